"""`loss.backward(torch.ones_like(loss))` and `loss[0].backward()` for a loss that is no scalar."""

import torch
from torch import nn


def gradient(size, backward):
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    x = torch.randn(4, 3).repeat(size // 4, 1)
    backward(model(x).pow(2).flatten())
    return model.weight.grad


WAYS = {
    "ones_like": lambda loss: loss.backward(torch.ones_like(loss)),
    "loss[0]": lambda loss: loss[0].backward(),
    "sum": lambda loss: loss.sum().backward(),
    "mean": lambda loss: loss.mean().backward(),
}
found = {name: [gradient(size, way) for size in (4, 64)] for name, way in WAYS.items()}
for name, (small, large) in found.items():
    print(f"gradient norm for 4 and 64 samples, {name}: {small.norm():.4f} {large.norm():.4f}")

assert torch.allclose(found["ones_like"][1], found["sum"][1])
assert torch.allclose(found["ones_like"][1], 16 * found["ones_like"][0], rtol=1e-4)
assert torch.allclose(found["mean"][1], found["mean"][0], rtol=1e-4)
assert torch.equal(found["loss[0]"][0], found["loss[0]"][1])
