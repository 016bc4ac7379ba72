"""One attention bias is expanded over the batch, and padding is then added to it in place."""

import torch
from torch import nn

torch.manual_seed(0)
embed, head = nn.Embedding(10, 8), nn.Linear(8, 10)
tokens = torch.randint(1, 10, (3, 6))
padding = torch.zeros(3, 1, 6)
padding[1, :, 4:] = -1e4
bias = torch.full((6, 6), -1e4).triu(1).expand(3, 6, 6).clone()
bias += padding
x = embed(tokens)
hidden = torch.softmax(x @ x.transpose(1, 2) + bias, dim=-1) @ x
loss = nn.functional.cross_entropy(head(hidden).flatten(0, 1), tokens.flatten())
loss.backward()
