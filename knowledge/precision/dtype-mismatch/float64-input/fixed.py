"""NumPy statistics are float64; normalising with them makes the batch float64, the weights are float32."""
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
readings = rng.normal(20.0, 4.0, (64, 5))
mean, std = torch.tensor(readings.mean(axis=0)), torch.tensor(readings.std(axis=0))
model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))

batch = torch.tensor(readings[:16], dtype=torch.float32)
batch = ((batch - mean) / std).float()
target = torch.zeros(16, 1)
loss = nn.functional.mse_loss(model(batch), target)
loss.backward()
