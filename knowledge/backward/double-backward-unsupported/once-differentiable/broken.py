import torch
from torch import nn
from torch.autograd.function import Function, once_differentiable


class Square(Function):
    @staticmethod
    def forward(ctx, inputs):
        ctx.save_for_backward(inputs)
        return inputs.pow(2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]


torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
inputs = torch.rand(8, 3, requires_grad=True)
output = Square.apply(layer(inputs)).pow(2).sum()
(slope,) = torch.autograd.grad(output, inputs, create_graph=True)
optimizer.zero_grad()
slope.pow(2).mean().backward()
optimizer.step()
