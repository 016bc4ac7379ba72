"""The queries that `chunk` cut from one projection are scaled in place."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q * x.shape[-1] ** -0.5
        return self.out((q @ k.transpose(1, 2)).softmax(-1) @ v)


torch.manual_seed(0)
model = Attention(8)
loss = model(torch.randn(2, 5, 8)).pow(2).mean()
loss.backward()
