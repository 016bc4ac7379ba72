"""Encoder and decoder share a table, and a loop makes a group of each part."""

import torch
from torch import nn

torch.manual_seed(0)

table = nn.Embedding(16, 8)
encoder, decoder = nn.Sequential(table, nn.Linear(8, 8)), nn.Sequential(table, nn.Linear(8, 16))
groups = []
for part in (encoder, decoder):
    params = [one for one in part.parameters() if one.requires_grad]
    groups.append({"params": params})
optimizer = torch.optim.SGD(groups, lr=0.1)
tokens = torch.randint(0, 16, (4, 5))
loss = encoder(tokens).square().mean() + decoder(tokens).square().mean()
loss.backward()
optimizer.step()
