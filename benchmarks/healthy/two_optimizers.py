"""Two optimizers for two parts of one model, one of them every second step."""

import torch
from torch import nn

torch.manual_seed(0)
embedding, body = nn.Embedding(32, 8), nn.Linear(8, 2)
fast, slow = torch.optim.SGD(embedding.parameters(), lr=0.1), torch.optim.AdamW(body.parameters(), lr=1e-3)
for step in range(12):
    nn.functional.cross_entropy(body(embedding(torch.randint(0, 32, (16,)))), torch.randint(0, 2, (16,))).backward()
    fast.step()
    fast.zero_grad()
    if step % 2:
        slow.step()
        slow.zero_grad()
