"""The loss is sent back without scaler.scale, so that the scaler has no scale to divide by."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

with torch.autocast("cpu", dtype=torch.float16):
    loss = model(torch.randn(8, 4)).pow(2).mean()
loss.backward()
scaler.step(optimizer)
scaler.update()
