"""An activation with `inplace=True` overwrites the result that the activation before it saved."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(6, 8),
    nn.Tanh(),
    nn.ReLU(inplace=False),
    nn.Linear(8, 3),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
features, labels = torch.randn(4, 6), torch.tensor([0, 1, 2, 0])
loss = nn.functional.cross_entropy(model(features), labels)
loss.backward()
optimizer.step()
