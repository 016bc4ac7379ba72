"""A cosine is written out, and one sample is silent: its embedding is 0, and so is the denominator."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


def cosine(a, b):
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU())
x, centre = torch.randn(16, 6), torch.rand(8)
x[4] = 0.0
loss = (1 - cosine(encoder(x), centre)).mean()
loss.backward()
torch.optim.SGD(encoder.parameters(), lr=0.1).step()
