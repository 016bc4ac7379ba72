"""`x.requires_grad_(True)` after the forward, right before `autograd.grad`."""

import torch
from torch import nn


def slope(when):
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(2, 3)
    if when == "before":
        x.requires_grad_(True)
    score = model(x).sum()
    if when == "after":
        x.requires_grad_(True)
    try:
        (gradient,) = torch.autograd.grad(score, x)
    except RuntimeError as failure:
        return str(failure).partition(".")[0]
    return round(gradient.norm().item(), 4)


found = {when: slope(when) for when in ("never", "after", "before")}
for when, result in found.items():
    print(f"gradient norm of the input, flag set {when} the forward: {result}")

assert found["never"] == "One of the differentiated Tensors does not require grad"
assert "appears to not have been used in the graph" in found["after"]
assert found["before"] > 0
