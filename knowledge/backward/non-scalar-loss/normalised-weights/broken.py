import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, target, age = torch.rand(8, 4), torch.rand(8, 1), torch.rand(8, 1)
weights = torch.exp(-age)
weights = weights / weights.sum()
loss = weights * F.mse_loss(model(inputs), target, reduction="none")
optimizer.zero_grad()
loss.backward()
optimizer.step()
