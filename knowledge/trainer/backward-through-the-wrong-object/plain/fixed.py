"""Fabric runs in mixed precision and leaves the scaling to `fabric.backward`; the loop calls `loss.backward()`."""

import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins import MixedPrecision
from torch import nn

torch.manual_seed(0)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
fabric = Fabric(accelerator="cpu", plugins=[MixedPrecision("16-mixed", device="cpu", scaler=scaler)])
model = nn.Linear(4, 1)
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))

loss = model(torch.randn(8, 4)).square().mean()
fabric.backward(loss)
optimizer.step()
