"""Gradients are accumulated over two batches, and unscaled for clipping after each of them."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for index in range(2):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(torch.randn(8, 4)).pow(2).mean() / 2
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if index == 1:
        scaler.step(optimizer)
        scaler.update()
