"""The label's column stays among the features, so that the layer gets one feature more than it was built for."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
table = torch.randn(48, 6)
table[:, -1] = (table[:, 0] + table[:, 2] > 0).float()
features, labels = table[:, :-1], table[:, -1].long()
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for x, y in DataLoader(TensorDataset(features, labels), batch_size=16):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
