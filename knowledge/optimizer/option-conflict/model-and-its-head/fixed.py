"""The head gets a learning rate of its own, and is in the group of the whole model besides."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
taken = {id(one) for one in model[2].parameters()}
optimizer = torch.optim.SGD([{"params": [one for one in model.parameters() if id(one) not in taken]}, {"params": model[2].parameters(), "lr": 0.1}], lr=0.01)
loss = model(torch.randn(8, 4)).pow(2).mean()
loss.backward()
optimizer.step()
