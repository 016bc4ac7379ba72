"""Rows of a table are whole numbers, which `torch.tensor` keeps as int64; a linear layer multiplies them with float32 weights."""

import torch
from torch import nn

torch.manual_seed(0)
rows = [[34, 2, 0], [51, 4, 1], [27, 1, 0], [45, 3, 1]]
features = torch.tensor([row[:2] for row in rows])
labels = torch.tensor([row[2] for row in rows])
model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loss = nn.functional.cross_entropy(model(features.float()), labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()
