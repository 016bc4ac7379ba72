"""Each layer of a mixture of experts collects its balance term, and nothing empties what was collected for the last step."""

import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(3, 2), nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.balance = []

    def forward(self, x):
        share = self.gate(x).softmax(-1)
        self.balance.append((share.mean(0) ** 2).sum())
        return x + sum(expert(x) * share[:, [at]] for at, expert in enumerate(self.experts))


torch.manual_seed(0)
layers, head = nn.ModuleList([Mixture(), Mixture()]), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*layers.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 4, 3):
    for one in layers:
        one.balance.clear()
    for layer in layers:
        x = layer(x)
    loss = head(x).pow(2).mean() + 0.1 * sum(sum(one.balance) for one in layers)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
