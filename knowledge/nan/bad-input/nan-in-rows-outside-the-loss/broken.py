"""Missing readings are NaN in the input; their rows are left out of the loss, and reach the weights all the same."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
readings, target = torch.randn(16, 4), torch.randn(16, 1)
readings[7, 2] = float("nan")
valid = readings.isfinite().all(-1)
pred = model(readings)
loss = nn.functional.mse_loss(pred[valid], target[valid])
loss.backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()
