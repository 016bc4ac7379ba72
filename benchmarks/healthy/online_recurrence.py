"""A recurrence that learns from each step by itself, a rollout of own predictions, and truncated windows: all with detach."""

import torch
from torch import nn

torch.manual_seed(0)
cell, head, model = nn.GRUCell(3, 6), nn.Linear(6, 1), nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters(), *model.parameters()], lr=1e-2)
x, target = torch.randn(8, 12, 3), torch.randn(8, 12)
state = torch.zeros(8, 6)
for step in range(12):
    state = cell(x[:, step], state.detach())
    optimizer.zero_grad()
    (head(state).squeeze(-1) - target[:, step]).pow(2).mean().backward()
    optimizer.step()
for _ in range(4):
    point, loss = x[:, 0], 0.0
    for step in range(1, 8):
        point = point.detach() + model(point.detach())
        loss = loss + (point - x[:, step]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
for _ in range(4):
    state, loss = torch.zeros(8, 6), 0.0
    for step in range(12):
        if step % 4 == 0:
            state = state.detach()
        state = cell(x[:, step], state)
        loss = loss + (head(state).squeeze(-1) - target[:, step]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
