"""Sparse gradients of an embedding with SparseAdam beside a dense optimizer."""

import torch
from torch import nn

torch.manual_seed(0)
embedding, body = nn.Embedding(100, 8, sparse=True), nn.Linear(8, 2)
first, second = torch.optim.SparseAdam(embedding.parameters(), lr=1e-2), torch.optim.Adam(body.parameters(), lr=1e-2)
for step in range(8):
    first.zero_grad()
    second.zero_grad()
    nn.functional.cross_entropy(body(embedding(torch.randint(0, 100, (16,)))), torch.randint(0, 2, (16,))).backward()
    first.step()
    second.step()
