import torch
from torch import nn

torch.manual_seed(0)
points, target = nn.Parameter(torch.rand(6, 2)), torch.rand(2)
for step in range(2):
    if step == 1:
        points.grad = None
        points.data = torch.cat([points.detach(), torch.rand(2, 2)])
    loss = (points - target).pow(2).sum(1).mean()
    loss.backward()
