"""A mask assigned into the attention probabilities overwrites the softmax that autograd saved."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, padding):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        probs = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, dim=-1)
        probs = probs.clone()
        probs[padding] = 0.0
        return self.out(probs @ v)


torch.manual_seed(0)
model = Attention(8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(2, 5, 8)
padding = torch.zeros(2, 5, 5, dtype=torch.bool)
padding[1, :, 3:] = True
loss = model(x, padding).pow(2).mean()
loss.backward()
optimizer.step()
