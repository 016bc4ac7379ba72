"""A loss in float16: scaled it is inf at first, and GradScaler leaves these steps out."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=1000)
for step in range(40):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(torch.randn(16, 4)).abs().mean()
    assert loss.dtype == torch.float16
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
