import torch
from torch import nn


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, scale):
        ctx.save_for_backward(inputs, scale)
        return inputs * scale

    @staticmethod
    def backward(ctx, grad):
        inputs, scale = ctx.saved_tensors
        return grad * scale, (grad * inputs)


torch.manual_seed(0)
layer, scale = nn.Linear(4, 3), nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([*layer.parameters(), scale], lr=0.1)
loss = Scale.apply(layer(torch.rand(8, 4)), scale).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
