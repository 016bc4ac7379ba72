"""`retain_graph=True` or `create_graph=False` in the `autograd.grad` of a gradient penalty."""

import torch
from torch import nn


def gradients(**options):
    torch.manual_seed(0)
    critic, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(5, 3, requires_grad=True)
    scores = critic(x)
    (slope,) = torch.autograd.grad(scores.sum(), x, **options) if options else (torch.ones_like(x),)
    loss = scores.mean() + 10 * (slope.norm(dim=1) - 1).pow(2).mean()
    loss.backward()
    return slope.requires_grad, torch.cat([one.grad.flatten() for one in critic.parameters()])


_, alone = gradients()
has_graph, remedy = gradients(retain_graph=True)
_, meant = gradients(create_graph=True)
print("the slope requires grad, retain_graph=True:", has_graph)
print(f"gradient norm, no penalty: {alone.norm():.4f}")
print(f"gradient norm, penalty with retain_graph=True: {remedy.norm():.4f}")
print(f"gradient norm, penalty with create_graph=True: {meant.norm():.4f}")

assert not has_graph and torch.equal(remedy, alone)
assert (meant - remedy).norm() > 0.1 * remedy.norm()
