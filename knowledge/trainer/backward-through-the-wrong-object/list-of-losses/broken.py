"""Backward is called on the list of the losses of three heads."""

import torch
from torch import nn

torch.manual_seed(0)

body, heads = nn.Linear(8, 16), nn.ModuleList(nn.Linear(16, 2) for _ in range(3))
optimizer = torch.optim.SGD([*body.parameters(), *heads.parameters()], lr=0.1)
x, labels = torch.randn(32, 8), torch.randint(0, 2, (3, 32))
for _ in range(3):
    optimizer.zero_grad()
    hidden = body(x).relu()
    losses = [nn.functional.cross_entropy(head(hidden), one) for head, one in zip(heads, labels)]
    losses.backward()
    optimizer.step()
