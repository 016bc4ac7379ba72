"""The covariance of fewer samples than dimensions is singular, and has no Cholesky factor."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(10, 8)
h = encoder(torch.randn(5, 10))
centred = h - h.mean(0)
covariance = centred.T @ centred / (len(h) - 1)
loss = -2 * torch.linalg.cholesky(covariance + 1e-3 * torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)).diagonal().log().sum()
loss.backward()
torch.optim.SGD(encoder.parameters(), lr=0.1).step()
