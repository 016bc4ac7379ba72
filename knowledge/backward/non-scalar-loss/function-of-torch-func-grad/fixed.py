import torch
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, target = torch.rand(8, 4), torch.rand(8, 1)


def loss(parameters):
    return (functional_call(model, parameters, (inputs,)) - target).pow(2).mean()


gradients = grad(loss)(dict(model.named_parameters()))
for name, parameter in model.named_parameters():
    parameter.grad = gradients[name]
optimizer.step()
