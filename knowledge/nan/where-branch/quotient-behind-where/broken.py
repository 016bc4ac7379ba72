"""A relative error is set to 0 where its reference is 0; the loss is finite and the gradient is not."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


def relative_error(pred, target):
    return torch.where(target != 0, (pred - target) / target, torch.zeros_like(pred))


torch.manual_seed(0)
model = nn.Linear(3, 1)
target = torch.tensor([[2.0], [0.0], [4.0]])
loss = relative_error(model(torch.randn(3, 3)), target).pow(2).mean()
loss.backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()
