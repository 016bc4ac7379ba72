import torch
from torch import nn


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, limit):
        ctx.save_for_backward(inputs)
        ctx.limit = limit
        return inputs.clamp(-limit, limit)

    @staticmethod
    def backward(ctx, grad):
        (inputs,) = ctx.saved_tensors
        return grad * (inputs.abs() <= ctx.limit), None


torch.manual_seed(0)
layer = nn.Linear(4, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
loss = Clamp.apply(layer(torch.rand(8, 4)), 0.5).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
