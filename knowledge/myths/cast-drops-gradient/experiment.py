"""`.to(torch.float32)`: does the cast cut the graph, and why does a print show `requires_grad=False`?"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layer, x, flags = nn.Linear(4, 4), torch.randn(2, 4, requires_grad=True), []


def segment(x):
    hidden = layer(x.to(torch.bfloat16).to(torch.float32))
    flags.append(hidden.requires_grad)
    return hidden.pow(2)


segment(x).sum().backward()
direct = layer.weight.grad.clone()
layer.zero_grad()
cast = x.to(torch.bfloat16).to(torch.float32)
print("after the cast: requires_grad", cast.requires_grad, type(cast.grad_fn).__name__)
checkpoint(segment, x, use_reentrant=True).sum().backward()
print("requires_grad printed in the layer, plain:", flags[0])
print("requires_grad printed in the layer, first and second pass of a reentrant segment:", flags[1:])
print(f"gradient norms, plain and checkpointed: {direct.norm():.4f} {layer.weight.grad.norm():.4f}")

assert cast.requires_grad and cast.grad_fn is not None
assert flags == [True, False, True]
assert torch.equal(direct, layer.weight.grad)
