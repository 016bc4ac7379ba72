"""A leaky cell lets its membrane decay in place, after the recurrent weights have read it."""

import torch
from torch import nn


class Leaky(nn.Module):
    """A recurrent layer whose membrane decays and integrates."""

    def __init__(self, features, width):
        super().__init__()
        self.drive = nn.Linear(features, width)
        self.recurrent = nn.Linear(width, width, bias=False)
        self.head = nn.Linear(width, 1)

    def forward(self, inputs):
        membrane = torch.zeros(len(inputs), self.recurrent.in_features)
        for t in range(inputs.shape[1]):
            current = torch.tanh(self.drive(inputs[:, t]) + self.recurrent(membrane))
            membrane = membrane.mul(0.9).add(current)
        return self.head(membrane)


torch.manual_seed(0)
model = Leaky(3, 8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
inputs, target = torch.randn(4, 6, 3), torch.randn(4, 1)
loss = nn.functional.mse_loss(model(inputs), target)
loss.backward()
optimizer.step()
