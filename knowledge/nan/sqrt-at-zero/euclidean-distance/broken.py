"""A hand-written distance is differentiated where two samples of a pair are the same."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


def distance(a, b):
    return ((a - b) ** 2).sum(-1).sqrt()


torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
anchor, positive = torch.randn(16, 8), torch.randn(16, 8)
positive[3] = anchor[3]
loss = distance(encoder(anchor), encoder(positive)).mean()
loss.backward()
optimizer.step()
