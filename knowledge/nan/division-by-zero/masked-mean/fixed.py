"""The mean over valid tokens divides by their number, and one sentence has none."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
embedding, head = nn.Embedding(20, 8), nn.Linear(8, 2)
tokens = torch.randint(1, 20, (4, 6))
tokens[2] = 0
mask = (tokens != 0).float().unsqueeze(-1)
hidden = embedding(tokens)
pooled = (hidden * mask).sum(1) / mask.sum(1).clamp_min(1)
loss = nn.functional.mse_loss(head(pooled).tanh(), torch.zeros(4, 2), reduction="none")
loss = loss[[0, 1, 3]].mean()
loss.backward()
