"""A frozen backbone in evaluation mode with a head that trains; the optimizer owns both."""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()).requires_grad_(False).eval()
head = nn.Linear(8, 2)
optimizer = torch.optim.SGD([{"params": backbone.parameters(), "lr": 0.0}, {"params": head.parameters()}], lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    nn.functional.cross_entropy(head(backbone(torch.randn(16, 4))), torch.randint(0, 2, (16,))).backward()
    optimizer.step()
