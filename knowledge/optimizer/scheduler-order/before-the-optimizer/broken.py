"""A silent one: the first learning rate of the schedule is never used; the assertion shows it."""

import torch
from torch import nn

torch.manual_seed(0)

model, inputs = nn.Linear(8, 1), torch.randn(4, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
rates = []
for _ in range(3):
    optimizer.zero_grad()
    model(inputs).pow(2).mean().backward()
    scheduler.step()
    rates.append(optimizer.param_groups[0]["lr"])
    optimizer.step()
torch.testing.assert_close(rates, [0.1, 0.05, 0.025])
