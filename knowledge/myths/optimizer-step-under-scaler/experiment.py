"""`optimizer.step()` for `scaler.step(optimizer)`, and clipping without `unscale_`, under a GradScaler."""

import torch
from torch import nn


def step(form):
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(5, 3)
    start = model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(x).mean()).backward()
    if form == "clip, scaler.step":
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if form == "unscale_, clip, scaler.step":
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step() if form == "optimizer.step" else scaler.step(optimizer)
    return (model.weight - start).norm().item()


FORMS = ("scaler.step", "optimizer.step", "unscale_, clip, scaler.step", "clip, scaler.step")
found = {form: step(form) for form in FORMS}
for form, length in found.items():
    print(f"length of the step, {form}: {length:.3g}")

plain, unscaled, clipped, early = found.values()
assert abs(unscaled / plain / 65536 - 1) < 1e-3
assert clipped > 0.03 and early < 1e-4 * clipped
