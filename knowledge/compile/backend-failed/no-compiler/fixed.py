"""Inductor finds no C++ compiler."""

import torch
from torch import nn
from torch._inductor import config

torch.manual_seed(0)

config.cpp.cxx = ("/no/such/g++",)
model = torch.compile(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2)), backend="aot_eager")
model(torch.randn(4, 8)).pow(2).mean().backward()
