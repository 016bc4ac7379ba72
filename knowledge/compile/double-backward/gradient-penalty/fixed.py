"""A gradient penalty differentiates a compiled critic twice."""

import torch
from torch import nn

torch.manual_seed(0)

critic = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
compiled = torch.compile(critic, backend="aot_eager")
samples = torch.randn(4, 8, requires_grad=True)
score = compiled(samples).mean()
(slope,) = torch.autograd.grad(critic(samples).sum(), samples, create_graph=True)
(score + (slope.norm(dim=1) - 1).pow(2).mean()).backward()
