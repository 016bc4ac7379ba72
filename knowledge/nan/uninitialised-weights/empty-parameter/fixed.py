"""A new layer's weight is made with torch.empty and never filled; deterministic mode shows such memory as NaN."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)
torch.use_deterministic_algorithms(True)


class Scale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * self.weight


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), Scale(8), nn.Linear(8, 2))
loss = nn.functional.cross_entropy(model(torch.randn(6, 4)), torch.tensor([0, 1, 0, 1, 0, 1]))
loss.backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()
