"""`model.train()` where the loss has no graph or an inference tensor is in the way."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))


def error_of(loss):
    try:
        loss.backward()
    except RuntimeError as failure:
        return str(failure).partition(".")[0].partition(" and does")[0]
    return "none"


with torch.no_grad():
    model.train()
    off = error_of(model(torch.randn(5, 3)).mean())
with torch.inference_mode():
    features = torch.randn(5, 3)
model.train()
try:
    inference = error_of(model(features).mean())
except RuntimeError as failure:
    inference = str(failure).partition(".")[0]
model.eval()
model(torch.randn(5, 3)).mean().backward()
print("error under no_grad, after model.train():", off)
print("error with an inference tensor, after model.train():", inference)
print(f"gradient norm in eval mode with grad mode on: {model[0].weight.grad.norm():.4f}")

assert "does not require grad" in off
assert "Inference tensors cannot be saved for backward" in inference
assert model[0].weight.grad.norm() > 0
