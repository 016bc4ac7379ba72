"""Four batches are summed for one step, and the sum goes on into the next four."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = 0.0
for number, (inputs, target) in enumerate(zip(torch.rand(12, 8, 5), torch.rand(12, 8, 1)), 1):
    total = total + nn.functional.mse_loss(model(inputs), target) / 4
    if number % 4 == 0:
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
