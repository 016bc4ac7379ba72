"""A backbone is thawed in a later epoch, and all that is trainable by then is added to an optimizer that has the head already."""

import torch
from torch import nn

torch.manual_seed(0)
backbone, head = nn.Linear(6, 6), nn.Linear(6, 2)
model = nn.Sequential(backbone, nn.ReLU(), head)
backbone.requires_grad_(False)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)

for epoch in range(3):
    if epoch == 1:
        backbone.requires_grad_(True)
        optimizer.add_param_group({"params": [p for p in model.parameters() if p.requires_grad], "lr": 0.01})
    loss = model(torch.randn(5, 6)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
