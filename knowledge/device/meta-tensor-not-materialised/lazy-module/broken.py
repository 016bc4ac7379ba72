"""The parameters of a lazy layer are counted before its first forward."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.LazyLinear(16), nn.ReLU(), nn.LazyLinear(2))
inputs = torch.randn(4, 8)
count = sum(parameter.numel() for parameter in model.parameters())
model(inputs).pow(2).mean().backward()
