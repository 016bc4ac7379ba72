"""A row of a weight is looked up in inference mode and written after the block."""

import torch
from torch import nn

torch.manual_seed(0)
embed, head = nn.Embedding(12, 8), nn.Linear(8, 12)
with torch.inference_mode():
    padding_row = embed.weight[0]
padding_row.zero_()
tokens = torch.randint(12, (3, 5))
loss = nn.functional.cross_entropy(head(embed(tokens)).flatten(0, 1), tokens.flatten())
loss.backward()
