"""Rows that name several tags each are given to cross-entropy, whose rows are distributions over classes."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()
tags = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 1]])
for _ in range(3):
    optimizer.zero_grad()
    criterion(model(torch.randn(4, 8)), tags.float()).backward()
    optimizer.step()
