"""SparseAdam is given the dense layers as well."""

import torch
from torch import nn

torch.manual_seed(0)

table, head = nn.Embedding(50, 8, sparse=True), nn.Linear(8, 2)
optimizers = [torch.optim.SparseAdam(table.parameters()), torch.optim.Adam(head.parameters())]
head(table(torch.tensor([3, 7, 11]))).pow(2).mean().backward()
for optimizer in optimizers:
    optimizer.step()
