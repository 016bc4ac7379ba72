"""A decoder feeds the scores of its best tokens back as ids: `max` gives values first and their places second."""

import torch
from torch import nn

torch.manual_seed(0)
table, cell, out = nn.Embedding(12, 8), nn.GRUCell(8, 8), nn.Linear(8, 12)
target = torch.randint(12, (4, 5))
state, token, loss = torch.zeros(4, 8), target[:, 0], 0.0
for at in range(1, 5):
    state = cell(table(token), state)
    logits = out(state)
    loss = loss + nn.functional.cross_entropy(logits, target[:, at])
    token = logits.max(1)[0]
loss.backward()
