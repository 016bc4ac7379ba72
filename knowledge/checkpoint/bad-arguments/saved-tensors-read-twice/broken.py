"""A custom Function reads ctx.saved_tensors twice in its backward, inside a checkpointed segment."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0]
        scale = ctx.saved_tensors[1]
        return grad * scale, grad * x


layer, scale = nn.Linear(4, 4), nn.Parameter(torch.ones(6, 4))
loss = checkpoint(lambda x: Product.apply(layer(x), scale), torch.randn(6, 4), use_reentrant=False).sum()
loss.backward()
