"""Weights copied from one module into another, frozen and trained ones, and a loss summed over tasks. steps: 6"""

import copy

import torch
from torch import nn

torch.manual_seed(0)
source = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
model, teacher = copy.deepcopy(source), nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
teacher.load_state_dict(source.state_dict())
teacher.requires_grad_(False)
with torch.no_grad():
    model[2].weight.copy_(source[2].weight.detach() * 0.5)
    model[2].bias.zero_()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    total = torch.zeros(())
    for task in range(3):
        x = torch.randn(8, 5)
        total = total + (model(x) - teacher(x)).square().mean()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
