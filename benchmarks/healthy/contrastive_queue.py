"""Contrast against a queue of keys, written in place after the step; the key encoder follows by momentum."""

import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

torch.manual_seed(0)
query = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))
key = copy.deepcopy(query).requires_grad_(False)
queue = normalize(torch.randn(8, 64), dim=0)
optimizer = torch.optim.SGD(query.parameters(), lr=0.05)
for step in range(8):
    x = torch.randn(16, 6)
    q = normalize(query(x + 0.1 * torch.randn_like(x)), dim=1)
    with torch.no_grad():
        for one, mean in zip(query.parameters(), key.parameters()):
            mean.mul_(0.99).add_(one, alpha=0.01)
        k = normalize(key(x), dim=1)
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.clone()], dim=1) / 0.2
    optimizer.zero_grad()
    cross_entropy(logits, torch.zeros(16, dtype=torch.long)).backward()
    optimizer.step()
    queue[:, step % 4 * 16 : (step % 4 + 1) * 16] = k.T
