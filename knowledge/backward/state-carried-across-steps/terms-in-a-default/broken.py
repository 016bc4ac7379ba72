"""A list of penalty terms is the default of an argument, which Python makes once: it holds those of every step before."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, terms=[]):  # noqa: B006
        h = torch.tanh(self.layer(x))
        terms.append(h.square().mean())
        return h, terms


torch.manual_seed(0)
block = Block()
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
for _ in range(3):
    h, terms = block(torch.randn(8, 4))
    loss = h.mean() + 0.1 * sum(terms)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
