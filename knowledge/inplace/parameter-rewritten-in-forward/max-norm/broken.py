"""A lookup with max_norm rescales rows of the table that a matrix product has already saved."""

import torch
from torch import nn

torch.manual_seed(0)
table = nn.Embedding(1000, 16, max_norm=1.0)
project = nn.Linear(16, 4)
optimizer = torch.optim.SGD([*table.parameters(), *project.parameters()], lr=0.1)
words, targets = torch.tensor([3, 7, 11]), torch.randn(3, 4)

everything = project(table.weight)
queries = project(table(words))
loss = nn.functional.mse_loss(queries, targets) + 0.01 * everything.pow(2).mean()
loss.backward()
optimizer.step()
