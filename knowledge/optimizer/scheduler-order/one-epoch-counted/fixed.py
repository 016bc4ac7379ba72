"""The schedule is given the steps of one epoch, and the loop runs three."""

import torch
from torch import nn

torch.manual_seed(0)

batches, epochs = torch.randn(4, 4, 8), 3
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=epochs * len(batches))
for epoch in range(epochs):
    for batch in batches:
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
        scheduler.step()
