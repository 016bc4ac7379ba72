"""A mask of -inf is added to the scores; before left padding ends, a position sees neither past nor padding."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


def bias_of(padding):
    future = torch.ones(padding.shape[1], padding.shape[1]).triu(1).bool()
    hidden = future | padding[:, None]
    return torch.zeros(hidden.shape).masked_fill(hidden, -1e9)


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, bias):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) + bias
        return torch.softmax(scores, dim=-1).masked_fill(bias <= -1e9, 0.0) @ v


torch.manual_seed(0)
model = Attention(8)
padding = torch.arange(5)[None] < torch.tensor([0, 2, 4])[:, None]
output = model(torch.randn(3, 5, 8), bias_of(padding))
output[~padding].pow(2).mean().backward()
