"""The program looks at its gradient norm after backward, and skips the step where it is not finite."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(12):
    x = torch.randn(16, 4)
    if step % 3 == 1:
        x[0, 0] = float("inf")
    optimizer.zero_grad()
    model(x).square().mean().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if not torch.isfinite(norm):
        continue
    optimizer.step()
