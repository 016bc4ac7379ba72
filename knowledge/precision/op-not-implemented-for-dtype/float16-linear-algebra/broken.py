"""The covariance is float16, for which the CPU has no Cholesky factorisation."""
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(4, 3)

with torch.autocast("cpu", dtype=torch.float16):
    features = encoder(torch.randn(16, 4))
    covariance = features.T @ features / 16 + torch.eye(3, dtype=features.dtype)
factor = torch.linalg.cholesky(covariance)
loss = factor.diagonal().log().sum()
loss.backward()
