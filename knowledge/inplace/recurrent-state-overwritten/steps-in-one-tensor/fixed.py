"""Each time step reads the last state from a tensor and writes the next one into it."""

import torch
from torch import nn

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
cell, head = nn.GRUCell(3, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-3)
inputs, target = torch.randn(6, 4, 3), torch.randn(6, 4, 1)

states = torch.zeros(7, 4, 8)
for t in range(6):
    states[t + 1] = cell(inputs[t], states[t].clone())
loss = nn.functional.mse_loss(head(states[1:]), target)
loss.backward()
optimizer.step()
