"""Reentrant activation checkpointing over trainable layers."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
first, second, third = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.GELU()), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters(), *third.parameters()], lr=1e-2)
for step in range(8):
    optimizer.zero_grad()
    hidden = checkpoint(second, first(torch.randn(8, 4)), use_reentrant=True)
    third(hidden).square().mean().backward()
    optimizer.step()
