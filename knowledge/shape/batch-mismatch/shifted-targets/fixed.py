"""The targets of a language model are shifted by one, the predictions are not."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
ids = torch.randint(20, (4, 6))
logits = model(ids)[:, :-1]
targets = ids[:, 1:]
loss = nn.functional.cross_entropy(logits.reshape(-1, 20), targets.reshape(-1))
loss.backward()
