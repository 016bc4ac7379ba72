"""A function under torch.func.grad updates a running mean that it captures."""

import torch
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(0)

model = nn.Linear(8, 1)
running_mean = torch.zeros(8)
inputs = torch.randn(4, 8)


running_mean.mul_(0.9).add_(0.1 * inputs.mean(0))


def loss(parameters, x):
    return functional_call(model, parameters, (x - running_mean,)).pow(2).mean()


parameters = dict(model.named_parameters())
gradients = grad(loss)(parameters, inputs)
for name, parameter in parameters.items():
    parameter.grad = gradients[name].detach()
