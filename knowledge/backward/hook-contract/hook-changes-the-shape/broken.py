import torch
from torch import nn


def keep_largest(grad):
    return grad.flatten().topk(4).values


torch.manual_seed(0)
layer = nn.Linear(4, 2)
layer.weight.register_hook(keep_largest)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
loss = layer(torch.rand(8, 4)).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
