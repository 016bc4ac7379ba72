"""A target is missing in the data and stands there as NaN."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
readings = torch.randn(16, 4)
target = torch.randn(16, 1)
target[7] = float("nan")
pred = model(readings)
loss = nn.functional.mse_loss(pred[target.isfinite()], target[target.isfinite()])
loss.backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()
