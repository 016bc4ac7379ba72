"""The last batch of an epoch has one sample."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
data = TensorDataset(torch.randn(9, 8), torch.randint(2, (9,)))
loader = DataLoader(data, batch_size=4)
for inputs, labels in loader:
    nn.functional.cross_entropy(model(inputs), labels).backward()
