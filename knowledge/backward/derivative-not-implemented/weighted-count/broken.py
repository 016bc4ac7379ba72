"""Scores are pooled by the bag that each instance belongs to, with a weighted count that has no derivative for its weights."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
instances, bags = torch.randn(6, 4), torch.tensor([0, 0, 1, 2, 2, 2])
scores = model(instances).squeeze(1).sigmoid()
pooled = torch.bincount(bags, weights=scores, minlength=3)
loss = nn.functional.mse_loss(pooled, torch.tensor([1.0, 0.0, 2.0]))
loss.backward()
optimizer.step()
