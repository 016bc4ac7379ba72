"""Binary cross entropy is written out on probabilities; a sigmoid has saturated to 0 where the label is 1."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
model = nn.Linear(10, 1)
income = torch.randn(32, 10) * 1000.0
label = torch.randint(0, 2, (32, 1)).float()
logit = model(income)
pred = torch.sigmoid(logit)
loss = -(label * nn.functional.logsigmoid(logit) + (1 - label) * nn.functional.logsigmoid(-logit)).mean()
loss.backward()
torch.optim.SGD(model.parameters(), lr=1e-3).step()
