"""The last text is shorter than the causal mask, which is made for the longest."""

import torch
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width=8, longest=6):
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.register_buffer("causal", torch.ones(longest, longest).tril())

    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT
        scores = scores.masked_fill(self.causal[..., : scores.size(1), : scores.size(1)] == 0, float("-inf"))
        return scores.softmax(-1) @ x


model, head = Attention(), nn.Linear(8, 3)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
for length in (6, 6, 4):
    optimizer.zero_grad()
    head(model(torch.randn(2, length, 8))).square().mean().backward()
    optimizer.step()
