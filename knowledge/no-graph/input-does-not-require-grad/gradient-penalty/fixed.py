import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
real, fake = torch.randn(4, 8), torch.randn(4, 8)

share = torch.rand(4, 1)
mixed = (share * real + (1 - share) * fake).requires_grad_(True)
(slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
penalty = (slope.norm(dim=1) - 1).square().mean()
loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
loss.backward()
optimizer.step()
