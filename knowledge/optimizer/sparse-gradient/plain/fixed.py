"""Adam is given an embedding with sparse gradients."""

import torch
from torch import nn

torch.manual_seed(0)

table = nn.Embedding(50, 8, sparse=True)
optimizer = torch.optim.SparseAdam(table.parameters())
table(torch.tensor([3, 7, 11])).pow(2).mean().backward()
optimizer.step()
