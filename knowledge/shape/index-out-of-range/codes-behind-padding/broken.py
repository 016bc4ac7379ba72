"""Ids begin behind the code of padding, and the table has as many rows as there are ids."""

from dataclasses import dataclass

import torch
from torch import nn

torch.manual_seed(0)
PAD = 0


@dataclass
class Catalogue:
    ids: dict

    @property
    def count(self):
        return len(self.ids)


catalogue = Catalogue({name: number for number, name in enumerate("abcdef", start=PAD + 1)})
table, head = nn.Embedding(catalogue.count, 8, padding_idx=PAD), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
rows = torch.tensor([[catalogue.ids[name] for name in word] for word in ("abc", "bad", "fed")])
for _ in range(3):
    optimizer.zero_grad()
    head(table(rows)).square().mean().backward()
    optimizer.step()
