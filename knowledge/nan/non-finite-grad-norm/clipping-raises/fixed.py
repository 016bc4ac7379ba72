"""Clipping with error_if_nonfinite finds a norm of NaN; the loss is finite and nothing names the operation."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
anchor, positive = torch.randn(16, 6), torch.randn(16, 6)
positive[3] = anchor[3]
distance = (model(anchor) - model(positive)).pow(2).sum(-1).clamp_min(1e-12).sqrt()
loss = distance.mean()
loss.backward()
nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
optimizer.step()
