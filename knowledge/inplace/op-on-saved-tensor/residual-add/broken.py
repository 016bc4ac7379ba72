"""A residual sum written with `+=` overwrites the ReLU output that autograd saved."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        h = torch.relu(self.conv1(x))
        h += self.conv2(h)
        return h


torch.manual_seed(0)
model = nn.Sequential(Block(4), nn.Flatten(), nn.Linear(4 * 8 * 8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images, labels = torch.randn(2, 4, 8, 8), torch.tensor([0, 2])
loss = nn.functional.cross_entropy(model(images), labels)
loss.backward()
optimizer.step()
