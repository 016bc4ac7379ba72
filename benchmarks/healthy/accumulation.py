"""Gradient accumulation over four backwards a step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(32):
    (model(torch.randn(4, 4)).square().mean() / 4).backward()
    if step % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
