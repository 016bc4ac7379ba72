"""A model built on the meta device is moved as if it had weights."""

import torch
from torch import nn

torch.manual_seed(0)

with torch.device("meta"):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
model.to_empty(device="cpu")
model.apply(lambda layer: layer.reset_parameters() if isinstance(layer, nn.Linear) else None)
model(torch.randn(4, 8)).pow(2).mean().backward()
