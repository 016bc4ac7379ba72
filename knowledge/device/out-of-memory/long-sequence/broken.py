"""Attention scores of an input that was not truncated: the square of 8 million."""

import torch
from torch import nn

torch.manual_seed(0)

tokens = torch.randn(1, 2**23, 2)
query, key = nn.Linear(2, 2), nn.Linear(2, 2)
scores = query(tokens) @ key(tokens).transpose(1, 2)
scores.softmax(-1).pow(2).mean().backward()
