"""LBFGS: many backwards inside of one step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)
x = torch.randn(64, 4)


def closure():
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True).sin()).square().mean()
    loss.backward()
    return loss


for step in range(6):
    optimizer.step(closure)
