import torch
from torch import nn

torch.manual_seed(0)
energy, centers = nn.Linear(5, 1, bias=False), nn.Parameter(torch.rand(5, 3))
optimizer = torch.optim.Adam([*energy.parameters(), centers])
positions = torch.rand(16, 3, requires_grad=True)
forces_target = torch.rand(16, 3)
potential = energy(torch.cdist(positions, centers)).sum()
(forces,) = torch.autograd.grad(-potential, positions, create_graph=True)
loss = nn.functional.mse_loss(forces, forces_target)
optimizer.zero_grad()
loss.backward()
optimizer.step()
