"""Weights are copied into parameters on the meta device, which keeps none of them."""

import torch
from torch import nn

torch.manual_seed(0)

saved = nn.Linear(8, 2).state_dict()
with torch.device("meta"):
    model = nn.Linear(8, 2)
model.load_state_dict(saved)
model(torch.randn(4, 8)).pow(2).mean().backward()
