"""Labels counted from 1 meet a layer with as many outputs."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(8, 3)
inputs = torch.randn(6, 8)
labels = torch.tensor([1, 2, 3, 1, 2, 3])
loss = nn.functional.cross_entropy(model(inputs), labels)
loss.backward()
