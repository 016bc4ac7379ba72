"""A loader hands out (batch, time, features), and the LSTM, which is told nothing, reads (time, batch, features)."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(8, 6, 3), torch.randint(0, 2, (8,)))
lstm = nn.LSTM(3, 16, batch_first=True)
head = nn.Linear(16, 2)

for series, labels in DataLoader(data, batch_size=4):
    _, (hidden, _) = lstm(series)
    nn.functional.cross_entropy(head(hidden[-1]), labels).backward()
