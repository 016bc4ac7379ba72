"""`fused=True` where an optimizer steps between the forward and the backward that needs its weights."""

import torch
from torch import nn


def gradient(order, **options):
    torch.manual_seed(0)
    first, second, x = nn.Linear(3, 4), nn.Linear(4, 1), torch.randn(5, 3)
    optimizer = torch.optim.SGD(second.parameters(), lr=1.0, **options)
    output = second(torch.tanh(first(x)))
    loss = output.pow(2).mean()
    if order == "step before backward":
        second.weight.grad, second.bias.grad = torch.ones(1, 4), torch.ones(1)
        optimizer.step()
    try:
        loss.backward()
    except RuntimeError as failure:
        return str(failure).partition(":")[0]
    return round(first.weight.grad.norm().item(), 4)


plain = gradient("step before backward", foreach=False)
fused = gradient("step before backward", fused=True)
meant = gradient("step after backward", fused=True)
print("gradient norm, step before backward:", plain)
print("gradient norm, step before backward, fused=True:", fused)
print("gradient norm, step after backward:", meant)

assert plain.endswith("modified by an inplace operation")
assert isinstance(fused, float) and abs(fused - meant) > 0.1 * meant
