"""The mean over valid tokens divides by their number; one sentence has none, and is dropped only after the division."""

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
pooled = pooled[mask.any(1).squeeze(-1)]
loss = nn.functional.cross_entropy(head(pooled), torch.tensor([0, 1, 1]))
loss.backward()
