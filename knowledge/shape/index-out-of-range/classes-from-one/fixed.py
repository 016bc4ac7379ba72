"""A table of the program's own numbers the classes from 1, and the last layer has as many outputs as there are classes."""

import torch
from torch import nn

torch.manual_seed(0)
SPECIES = {"fox": 0, "owl": 1, "elk": 2}
seen = ["owl", "elk", "fox", "elk"]

model = nn.Linear(5, len(SPECIES))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
labels = torch.tensor([SPECIES[name] for name in seen])
loss = nn.functional.cross_entropy(model(torch.randn(4, 5)), labels)
loss.backward()
optimizer.step()
