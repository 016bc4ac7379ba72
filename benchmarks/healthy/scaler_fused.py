"""A fused optimizer under a GradScaler: its step is called also where it is skipped inside."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=1000)
for step in range(40):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(torch.randn(16, 4)).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
assert all(one.isfinite().all() for one in model.parameters())
