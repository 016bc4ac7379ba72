"""Layers are frozen and thawed by epoch; the optimizer owns all of them all the time."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(4):
    model.requires_grad_(False)
    for layer in list(model)[-1 - 2 * min(epoch, 2) :]:
        layer.requires_grad_(True)
    for step in range(4):
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(16, 4)).square().mean().backward()
        optimizer.step()
