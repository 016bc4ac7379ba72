"""A mask is loaded with values 0 and 255 and given to binary cross entropy."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 1, 1), nn.Sigmoid())
image = torch.rand(2, 3, 8, 8)
mask = torch.randint(0, 2, (2, 1, 8, 8)).float() * 255
loss = nn.functional.binary_cross_entropy(model(image), mask)
loss.backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()
