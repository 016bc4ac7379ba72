"""Activations are standardised over the batch, and a dead unit has the same value in every sample."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


class Standardise(nn.Module):
    def forward(self, h):
        return (h - h.mean(0)) / h.std(0)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), Standardise(), nn.Linear(8, 1))
with torch.no_grad():
    model[0].bias[5] = -10.0
loss = nn.functional.mse_loss(model(torch.randn(16, 6)), torch.zeros(16, 1))
loss.backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()
