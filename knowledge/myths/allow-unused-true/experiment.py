"""`allow_unused=True` where the input of a gradient penalty is not in the graph."""

import torch
from torch import nn


def penalty_gradient(remedy):
    torch.manual_seed(0)
    critic, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(5, 3)
    if remedy:
        scores = critic(x.clone())
        x.requires_grad_(True)
    else:
        x.requires_grad_(True)
        scores = critic(x)
    options = {"allow_unused": True, "materialize_grads": True} if remedy == "materialize" else {"allow_unused": bool(remedy)}
    (slope,) = torch.autograd.grad(scores.sum(), x, create_graph=True, **options)
    if slope is None:
        return "None", None
    penalty = (slope.norm(dim=1) - 1).pow(2).mean()
    if penalty.requires_grad:
        penalty.backward()
    gradient = critic[0].weight.grad
    return f"{penalty.item():.4f}", None if gradient is None else round(gradient.norm().item(), 4)


results = {}
for name, remedy in (("allow_unused=True", "unused"), ("and materialize_grads=True", "materialize"), ("flag before the forward", None)):
    value, gradient = results[name] = penalty_gradient(remedy)
    print(f"penalty and its gradient norm in the critic, {name}: {value} {gradient}")

unused, zeros, right = results.values()
assert unused == ("None", None) and zeros == ("1.0000", None)
assert right[1] > 0
