"""A compiled float16 model under a GradScaler: the whole region's backward is one node, and it overflows."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
dtype = torch.float16
layers = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64)).to(dtype)
with torch.no_grad():
    for layer in layers:
        layer.weight.mul_(10.0)
model = torch.compile(layers, backend="aot_eager")
scaler = torch.amp.GradScaler("cpu", enabled=dtype == torch.float16)
output = model(torch.randn(8, 64).to(dtype))
loss = output.float().pow(2).mean()
scaler.scale(loss).backward()
