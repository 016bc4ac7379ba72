"""A loss on probabilities is given the scores of a linear layer."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()
x = torch.randn(32, 8)
labels = (x[:, :1] > 0).float()
for _ in range(3):
    optimizer.zero_grad()
    criterion(model(x), labels).backward()
    optimizer.step()
