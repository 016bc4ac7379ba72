import torch
from torch import nn


def flat_gradient(loss, weights):
    return torch.cat([one.flatten() for one in torch.autograd.grad(loss, weights, retain_graph=True)])


torch.manual_seed(0)
trunk, price, days = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 1)
shared = list(trunk.parameters())
optimizer = torch.optim.SGD(shared, lr=0.1)
x, y = torch.randn(16, 6), torch.randn(16, 2)
hidden = torch.tanh(trunk(x))
losses = [(price(hidden) - y[:, :1]).pow(2).mean(), (days(hidden) - y[:, 1:]).pow(2).mean()]
first, second = [flat_gradient(loss, shared) for loss in losses]
if first @ second < 0:
    second = second - (first @ second) / (first @ first) * first
total = first + second
for weight, part in zip(shared, total.split([one.numel() for one in shared])):
    weight.grad = part.view_as(weight)
optimizer.step()
