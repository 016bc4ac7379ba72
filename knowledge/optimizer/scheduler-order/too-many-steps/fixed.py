"""A schedule of 4 optimizer steps is stepped once a batch, at two batches a step."""

import torch
from torch import nn

torch.manual_seed(0)

model, batches = nn.Linear(8, 1), torch.randn(8, 4, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=4)
for index, batch in enumerate(batches):
    if index % 2 == 0:
        optimizer.zero_grad()
    model(batch).pow(2).mean().backward()
    if index % 2 == 1:
        optimizer.step()
        scheduler.step()
