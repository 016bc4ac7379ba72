"""A critic with a gradient penalty: differentiated twice."""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(8):
    real, fake = torch.randn(8, 4), torch.randn(8, 4)
    mixed = (real + torch.rand(8, 1) * (fake - real)).requires_grad_()
    (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    loss = critic(fake).mean() - critic(real).mean() + 10 * (slope.norm(dim=1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
