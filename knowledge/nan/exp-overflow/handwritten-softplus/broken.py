"""A positive rate is made with log(1 + exp(x)), which overflows for x above 88 where softplus is x."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
model = nn.Linear(5, 1)
visits = torch.randn(16, 5) * 200.0
count = torch.randint(0, 50, (16, 1)).float()
rate = torch.log(1 + torch.exp(model(visits)))
loss = nn.functional.smooth_l1_loss(rate.clamp(max=1e4), count)
loss.backward()
torch.optim.SGD(model.parameters(), lr=1e-4).step()
