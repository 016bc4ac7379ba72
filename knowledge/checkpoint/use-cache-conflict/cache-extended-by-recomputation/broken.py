"""The attention appends its keys to a cache; the recomputation in backward appends them a second time."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, cache):
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        if cache is not None:
            cache.append((key, value))
            key, value = (torch.cat(parts, dim=1) for parts in zip(*cache))
        return torch.softmax(query @ key.transpose(1, 2), dim=-1) @ value


embed, attention = nn.Embedding(16, 8), Attention()
x = embed(torch.randint(16, (2, 5)))
cache = []
loss = checkpoint(attention, x, cache, use_reentrant=False).pow(2).mean()
loss.backward()
