import torch
from torch import nn


def train_step(model, inputs, target):
    loss = nn.functional.mse_loss(model(inputs), target)
    loss.backward()
    return loss


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, target = torch.rand(16, 4), torch.rand(16, 1)
optimizer.zero_grad()
loss = train_step(model, inputs, target)
loss.backward()
optimizer.step()
