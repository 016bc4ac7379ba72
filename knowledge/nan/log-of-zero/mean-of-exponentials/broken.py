"""The log of a mean of exponentials: log weights of an importance-weighted bound lie far below 0, and their exponentials are 0."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(6, 6)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
log_w = encoder(torch.randn(5, 8, 6)).sum(-1) - 900.0
weights = log_w.exp()
loss = -weights.mean(0).log().mean()
loss.backward()
torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0, error_if_nonfinite=True)
optimizer.step()
