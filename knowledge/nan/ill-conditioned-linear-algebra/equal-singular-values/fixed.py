"""A rotation is read off the singular vectors of a matrix whose singular values are all 1."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


def nearest_rotation(matrix):
    u, _, v = torch.linalg.svd(matrix + 1e-3 * torch.randn_like(matrix))
    return u @ v


torch.manual_seed(0)
head = nn.Linear(4, 9)
nn.init.zeros_(head.weight)
with torch.no_grad():
    head.bias.copy_(torch.eye(3).flatten())
rotation = nearest_rotation(head(torch.randn(5, 4)).view(5, 3, 3))
loss = nn.functional.mse_loss(rotation, torch.eye(3).roll(1, 0).expand(5, 3, 3))
loss.backward()
torch.optim.SGD(head.parameters(), lr=0.1).step()
