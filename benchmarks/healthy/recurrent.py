"""Truncated backpropagation through time: the state is carried and detached."""

import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 4)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-2)
state = torch.zeros(1, 2, 8)
for step in range(8):
    x = torch.randn(2, 6, 4)
    y, state = cell(x, state)
    loss = (head(y) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = state.detach()
