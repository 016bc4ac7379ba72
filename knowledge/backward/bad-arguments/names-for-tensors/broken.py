import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, target = torch.rand(8, 4), torch.rand(8, 1)
loss = nn.functional.mse_loss(model(inputs), target)
gradients = torch.autograd.grad(loss, list(model.named_parameters()))
for parameter, gradient in zip(model.parameters(), gradients):
    parameter.grad = gradient
optimizer.step()
