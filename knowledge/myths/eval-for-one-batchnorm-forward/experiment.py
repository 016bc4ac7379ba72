"""BatchNorm in eval mode for one of two forwards before one backward."""

import torch
from torch import nn


def gradient(remedy):
    torch.manual_seed(0)
    norm, layer = nn.BatchNorm1d(4), nn.Linear(3, 4)
    first, second = torch.randn(8, 3), 10 + 5 * torch.randn(8, 3)
    norm.eval()
    one = norm(layer(first))
    if remedy:
        norm.train()
        norm(layer(second).detach())  # moves the running statistics that the first forward saved
    one.pow(2).sum().backward()
    return layer.weight.grad


remedy, meant = gradient(remedy=True), gradient(remedy=False)
print(f"gradient norm of the first forward, second in train mode: {remedy.norm():.4f}")
print(f"gradient norm of the first forward, alone: {meant.norm():.4f}")

assert (remedy - meant).norm() > 0.1 * meant.norm()
