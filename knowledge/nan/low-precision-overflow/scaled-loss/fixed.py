"""float16 weights, and the loss scaled by 65536 as a GradScaler does: the gradients leave float16's range."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
dtype = torch.bfloat16
model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64)).to(dtype)
with torch.no_grad():
    for layer in model:
        layer.weight.mul_(10.0)
x = torch.randn(8, 64).to(dtype)
loss = model(x).float().pow(2).mean()
(loss * 65536.0).backward()
torch.optim.SGD(model.parameters(), lr=1e-9).step()
