"""The loss is made a number for the log, and backward is called on that."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
loss = nn.functional.cross_entropy(model(x), y).item()
loss.backward()
optimizer.step()
print(f"{loss:.3f}")
