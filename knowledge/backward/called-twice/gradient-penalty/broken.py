import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(critic.parameters())
inputs = torch.rand(8, 3, requires_grad=True)
scores = critic(inputs)
(slope,) = torch.autograd.grad(scores.sum(), inputs)
penalty = (slope.norm(dim=1) - 1).pow(2).mean()
optimizer.zero_grad()
(scores.mean() + 10 * penalty).backward()
optimizer.step()
