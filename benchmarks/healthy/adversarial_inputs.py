"""Adversarial training: gradients with respect to the input are asked for before those of the weights."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
    moved = x.clone().requires_grad_()
    cross_entropy(model(moved), y).backward()
    x = x + 0.1 * moved.grad.sign()
    optimizer.zero_grad()
    cross_entropy(model(x), y).backward()
    optimizer.step()
