"""A running second moment starts as an expanded tensor and is updated in place."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 4)
second_moment = torch.zeros(1, 6).expand_as(model.weight).clone()
for _ in range(2):
    loss = model(torch.randn(8, 6)).pow(2).mean()
    model.zero_grad()
    loss.backward()
    second_moment.mul_(0.9).add_(0.1 * model.weight.grad**2)
    with torch.no_grad():
        model.weight -= 0.01 * model.weight.grad / (second_moment.sqrt() + 1e-8)
