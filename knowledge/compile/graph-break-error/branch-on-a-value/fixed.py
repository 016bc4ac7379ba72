"""A branch on a tensor's value in a function that must be one graph."""

import torch
from torch import nn

torch.manual_seed(0)

layer = nn.Linear(8, 8)


@torch.compile(fullgraph=False, backend="aot_eager")
def forward(x):
    y = layer(x)
    if y.norm() > 1:
        y = y / y.norm()
    return y


forward(torch.randn(4, 8)).sum().backward()
