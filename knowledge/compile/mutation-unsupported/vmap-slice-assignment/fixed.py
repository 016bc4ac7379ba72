"""Under vmap a plain tensor is filled with batched values."""

import torch
from torch import nn
from torch.func import vmap

torch.manual_seed(0)

layer = nn.Linear(2, 2)


def padded(x):
    zero = torch.zeros(1)
    return torch.cat([zero, layer(x), zero])


vmap(padded)(torch.randn(5, 2)).pow(2).mean().backward()
