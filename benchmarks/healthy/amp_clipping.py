"""A GradScaler whose gradients are unscaled before they are clipped; every other step scales the limit instead."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for step in range(20):
    x = torch.randn(16, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(x)
    loss = (out.float() - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    if step % 2:
        scaler.unscale_(optimizer)
        (1e-4 * net[0].weight.square().sum()).backward()  # behind the unscaling it needs no factor
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    else:
        nn.utils.clip_grad_norm_(net.parameters(), 1.0 * scaler.get_scale())
    scaler.step(optimizer)
    scaler.update()
print(f"loss {loss.item():.4f}")
