"""A gradient penalty by `backward(create_graph=True)` warns of a cycle; its gradients are right."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
parameters, x = list(model.parameters()), torch.randn(4, 8)


def penalty(gradients):
    return sum(gradient.square().sum() for gradient in gradients)


loss = model(x).square().mean()
slopes = torch.autograd.grad(loss, parameters, create_graph=True)
wanted = torch.autograd.grad(loss + penalty(slopes), parameters)

loss = model(x).square().mean()
(loss + penalty(torch.autograd.grad(loss, parameters, create_graph=True))).backward()
assert all(torch.allclose(parameter.grad, grad) for parameter, grad in zip(parameters, wanted, strict=True))
