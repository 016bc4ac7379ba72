"""A loss that grows for a while, large but finite gradients, clipped."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(10):
    optimizer.zero_grad()
    loss = (model(1e3 * torch.randn(16, 4))).square().mean()
    loss.backward()
    print("loss", float(loss))
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
