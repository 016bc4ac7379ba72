"""A compiled float16 model under a scaled loss: the whole region's backward is one node, and it overflows."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
dtype = torch.bfloat16
layers = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64)).to(dtype)
with torch.no_grad():
    for layer in layers:
        layer.weight.mul_(10.0)
model = torch.compile(layers, backend="aot_eager")
x = torch.randn(8, 64).to(dtype)
loss = model(x).float().pow(2).mean()
(loss * 65536.0).backward()
torch.optim.SGD(layers.parameters(), lr=1e-9).step()
