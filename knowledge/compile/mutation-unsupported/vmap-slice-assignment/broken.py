"""Under vmap a plain tensor is filled with batched values."""

import torch
from torch import nn
from torch.func import vmap

torch.manual_seed(0)

layer = nn.Linear(2, 2)


def padded(x):
    result = torch.zeros(4)
    result[1:3] = layer(x)
    return result


vmap(padded)(torch.randn(5, 2)).pow(2).mean().backward()
