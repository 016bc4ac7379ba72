"""A DataLoader without a `collate_fn` stacks sequences of different length."""

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
table = nn.Embedding(32, 8)
sequences = [torch.tensor([1, 2, 3]), torch.tensor([4, 5])]
for batch in DataLoader(sequences, batch_size=2):
    table(batch).sum().backward()
