"""Generalised-mean pooling takes the root of a channel that a ReLU has left at 0 everywhere."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


class GeneralisedMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.tensor(3.0))

    def forward(self, x):
        return x.pow(self.p).mean((-2, -1)).pow(1.0 / self.p)


torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), GeneralisedMean(), nn.Linear(4, 2))
with torch.no_grad():
    model[0].bias[1] = -10.0
loss = nn.functional.cross_entropy(model(torch.randn(4, 3, 8, 8)), torch.tensor([0, 1, 0, 1]))
loss.backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()
