"""A batch that gives nan is left out by the program itself: no backward, no step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(12):
    x = torch.randn(16, 4)
    if step % 3 == 1:
        x[0, 0] = float("nan")
    loss = model(x).square().mean()
    if not torch.isfinite(loss):
        print(f"step {step}: loss is nan, skipped")
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
