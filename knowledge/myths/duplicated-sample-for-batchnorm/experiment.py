"""A batch of one repeated to make two, so that BatchNorm takes it."""

import torch
from torch import nn


def gradient(x):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    output = model(x)
    output.pow(2).sum().backward()
    return output.flatten().tolist(), model[0].weight.grad.norm().item()


torch.manual_seed(1)
one, other = torch.randn(1, 3), torch.randn(1, 3)
first, remedy = gradient(one.repeat(2, 1))
second, again = gradient(other.repeat(2, 1))
_, meant = gradient(torch.cat([one, other]))
print("output for one sample, repeated:", [round(value, 4) for value in first])
print("output for another sample, repeated:", [round(value, 4) for value in second])
print(f"gradient norm of the layer before, repeated: {remedy:.2g} {again:.2g}")
print(f"gradient norm of the layer before, two samples: {meant:.2g}")

assert torch.allclose(torch.tensor(first), torch.tensor(second), atol=1e-4)
assert max(remedy, again) < 1e-3 * meant
