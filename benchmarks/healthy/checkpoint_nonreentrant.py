"""Non-reentrant activation checkpointing, nested."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.GELU()) for _ in range(4))
optimizer = torch.optim.Adam(layers.parameters(), lr=1e-2)


def inner(x):
    return checkpoint(layers[2], checkpoint(layers[1], x, use_reentrant=False), use_reentrant=False)


for step in range(8):
    optimizer.zero_grad()
    hidden = checkpoint(inner, layers[0](torch.randn(8, 8)), use_reentrant=False)
    layers[3](hidden).square().mean().backward()
    optimizer.step()
