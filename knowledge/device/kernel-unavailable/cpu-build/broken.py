"""A CPU build of torch is asked for the GPU."""

import torch
from torch import nn

torch.manual_seed(0)

device = "cuda"
model = nn.Linear(8, 2).to(device)
inputs = torch.randn(4, 8, device=device)
model(inputs).pow(2).mean().backward()
