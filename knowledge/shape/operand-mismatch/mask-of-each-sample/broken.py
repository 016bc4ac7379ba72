"""Points attend to their neighbours; each cloud has a mask of its own, and an attention of two heads wants one for each head."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm = nn.LayerNorm(width)

    def forward(self, x, far):
        mixed, _ = self.attn(x, x, x, attn_mask=far)
        return self.norm(x + mixed)


torch.manual_seed(0)
points = torch.randn(3, 5, 2)
far = torch.cdist(points, points) > 1.0
lift, block, head = nn.Linear(2, 8), Block(8, 2), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*lift.parameters(), *block.parameters(), *head.parameters()], lr=0.1)
loss = head(block(lift(points), far)).pow(2).mean()
loss.backward()
optimizer.step()
