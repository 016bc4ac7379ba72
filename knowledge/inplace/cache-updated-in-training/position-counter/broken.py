"""A decode loop trains through its key/value cache and moves the position counter in place."""

import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, dim=8, heads=2, slots=16):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), heads
        self.register_buffer("k_cache", torch.zeros(1, heads, slots, dim // heads))
        self.register_buffer("v_cache", torch.zeros(1, heads, slots, dim // heads))

    def forward(self, x, input_pos=None):
        q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in self.qkv(x).chunk(3, -1))
        if input_pos is not None:
            k = self.k_cache.index_copy_(2, input_pos, k)
            v = self.v_cache.index_copy_(2, input_pos, v)
        return self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


torch.manual_seed(0)
embed, attention, head = nn.Embedding(10, 8), CachedAttention(), nn.Linear(8, 10)
token, target, input_pos = torch.tensor([[3]]), torch.tensor([7]), torch.tensor([0])
logits = head(attention(embed(token), input_pos))
input_pos.add_(1)
loss = nn.functional.cross_entropy(logits.flatten(0, 1), target)
loss.backward()
