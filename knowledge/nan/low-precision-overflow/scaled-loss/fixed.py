"""float16 weights, and a GradScaler that multiplies the loss by 65536: the gradients leave float16's range."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
dtype = torch.bfloat16
model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64)).to(dtype)
with torch.no_grad():
    for layer in model:
        layer.weight.mul_(10.0)
scaler = torch.amp.GradScaler("cpu", enabled=dtype == torch.float16)
output = model(torch.randn(8, 64).to(dtype))
loss = output.float().pow(2).mean()
scaler.scale(loss).backward()
