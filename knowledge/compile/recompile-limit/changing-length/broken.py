"""Each batch has another length, and the function is specialised on it."""

import torch
from torch import nn

torch.manual_seed(0)

layer = nn.Linear(4, 4)


@torch.compile(fullgraph=True, dynamic=False, backend="aot_eager")
def forward(x):
    return layer(x).sum()


for length in range(2, 14):
    forward(torch.randn(length, 4)).backward()
