"""LBFGS steps without the closure that it evaluates several times."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(8, 2)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
inputs, target = torch.randn(4, 8), torch.randn(4, 2)
def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), target)
    loss.backward()
    return loss

optimizer.step(closure)
