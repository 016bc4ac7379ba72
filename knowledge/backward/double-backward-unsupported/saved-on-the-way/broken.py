"""A custom activation keeps its gate for the backward, which a force loss differentiates again."""

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        out = x * gate
        ctx.save_for_backward(gate, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        gate, out = ctx.saved_tensors
        return grad * (gate + out * (1 - gate))


torch.manual_seed(0)
first, second = nn.Linear(3, 16), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])
for _ in range(3):
    position = torch.randn(8, 3, requires_grad=True)
    energy = second(Swish.apply(first(position))).sum()
    (force,) = torch.autograd.grad(energy, position, create_graph=True)
    loss = (force + position).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
