"""An exponential moving average of the weights, updated in place after each step."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(8):
    optimizer.zero_grad()
    model(torch.randn(16, 4)).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        for mean, one in zip(average.parameters(), model.parameters()):
            mean.lerp_(one, 0.01)
