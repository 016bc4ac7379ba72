"""`clip_grad_norm_` and `clip_grad_value_` on gradients of which one is NaN."""

import torch
from torch import nn

CLIPS = {
    "none": lambda parameters: None,
    "clip_grad_norm_": lambda parameters: nn.utils.clip_grad_norm_(parameters, 1.0),
    "clip_grad_value_": lambda parameters: nn.utils.clip_grad_value_(parameters, 1.0),
}
counts = {}
for name, clip in CLIPS.items():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    model(torch.randn(5, 3)).pow(2).mean().backward()
    model[0].bias.grad[0] = float("nan")
    clip(model.parameters())
    gradients = torch.cat([one.grad.flatten() for one in model.parameters()])
    counts[name] = int(gradients.isnan().sum())
    print(f"NaN gradients, {name}: {counts[name]} of {gradients.numel()}")
try:
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    error = "none"
except RuntimeError as failure:
    error = str(failure).partition(",")[0]
print("with error_if_nonfinite=True:", error)

assert counts == {"none": 1, "clip_grad_norm_": 21, "clip_grad_value_": 1}
assert error.startswith("The total norm of order 2.0 for gradients")
