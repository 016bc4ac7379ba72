"""A compiled function takes a root at 0; anomaly mode names the region and not the root."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


@torch.compile(backend="aot_eager")
def distance(a, b):
    return ((a - b) ** 2).sum(-1).sqrt()


anchor, positive = torch.randn(16, 8), torch.randn(16, 8)
positive[3] = anchor[3]
loss = distance(encoder(anchor), encoder(positive)).mean()
loss.backward()
torch.optim.SGD(encoder.parameters(), lr=0.1).step()
