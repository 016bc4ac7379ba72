"""The embedding is frozen and its output was made a leaf that requires grad; `+=` writes into that leaf."""

import torch
from torch import nn


def require_grad(module, args, output):
    output.requires_grad_(True)


torch.manual_seed(0)
embed, position = nn.Embedding(20, 8), nn.Embedding(6, 8)
block, head = nn.Linear(8, 8), nn.Linear(8, 20)
embed.requires_grad_(False)
embed.register_forward_hook(require_grad)

tokens = torch.randint(20, (2, 6))
hidden = embed(tokens)
hidden = hidden + position(torch.arange(6))
logits = head(torch.relu(block(hidden)))
loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
loss.backward()
