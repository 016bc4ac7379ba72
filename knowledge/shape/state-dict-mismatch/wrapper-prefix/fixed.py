"""Weights saved from a DataParallel wrapper are loaded into the bare module."""

import torch
from torch import nn

torch.manual_seed(0)

saved = nn.DataParallel(nn.Linear(8, 3)).state_dict()
model = nn.Linear(8, 3)
model.load_state_dict({name.removeprefix("module."): value for name, value in saved.items()})
model(torch.randn(4, 8)).pow(2).mean().backward()
