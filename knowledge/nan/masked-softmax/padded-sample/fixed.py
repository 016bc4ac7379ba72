"""Attention masks padding with -inf, and one sample is all padding; leaving it out of the loss does not help."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, padding):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / x.shape[-1] ** 0.5
        scores = scores.masked_fill(padding[:, None, :], torch.finfo(scores.dtype).min)
        return torch.softmax(scores, dim=-1).masked_fill(padding[:, None, :], 0.0) @ v


torch.manual_seed(0)
model = Attention(8)
padding = torch.arange(5)[None] >= torch.tensor([5, 3, 0])[:, None]
output = model(torch.randn(3, 5, 8), padding)
loss = output[~padding].pow(2).mean()
loss.backward()
