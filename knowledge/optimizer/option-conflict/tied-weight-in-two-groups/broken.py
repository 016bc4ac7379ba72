"""A weight that two modules share is put into both parameter groups."""

import torch
from torch import nn

torch.manual_seed(0)

embed, head = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
head.weight = embed.weight
optimizer = torch.optim.AdamW(
    [
        {"params": list(embed.parameters()), "weight_decay": 0.0},
        {"params": list(head.parameters())},
    ]
)
head(embed(torch.tensor([1, 2]))).pow(2).mean().backward()
optimizer.step()
