"""torch.where replaces the logarithm of empty bins by 0, after it was taken."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
counts = torch.tensor([[0.0, 2.0, 5.0, 0.0], [1.0, 0.0, 3.0, 4.0]])
gain = nn.Parameter(torch.ones(4))
head = nn.Linear(4, 1)
spectrum = counts * gain
features = torch.where(spectrum > 0, torch.log(spectrum), torch.zeros_like(spectrum))
loss = head(features).pow(2).mean()
loss.backward()
torch.optim.SGD([gain, *head.parameters()], lr=0.1).step()
