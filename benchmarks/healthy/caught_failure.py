"""A step that fails is caught and done again with half the batch, as for lack of memory; then all goes on."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
size = 16
for step in range(8):
    try:
        if size > 8:
            raise RuntimeError("out of memory (as if)")
        optimizer.zero_grad()
        model(torch.randn(size, 4)).square().mean().backward()
        optimizer.step()
    except RuntimeError:
        size //= 2
