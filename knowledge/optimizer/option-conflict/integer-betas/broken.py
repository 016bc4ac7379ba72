"""WGANs are trained with Adam's first beta at 0, which is written as an integer."""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Linear(4, 1)
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0, 0.9))
loss = critic(torch.randn(8, 4)).mean()
loss.backward()
optimizer.step()
