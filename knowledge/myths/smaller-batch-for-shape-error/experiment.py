"""A smaller batch where two shapes do not fit."""

import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(10, 4)
found = {}
for size in (32, 4, 1):
    try:
        layer(torch.randn(size, 12))
        found[size] = "none"
    except RuntimeError as failure:
        found[size] = str(failure).partition("(")[0].strip()
    print(f"error of features that do not fit, batch {size}: {found[size]}")


def gradient(size):
    output, target = torch.zeros(size, requires_grad=True), torch.arange(3.0)
    try:
        (output - target).pow(2).sum().backward()
    except RuntimeError as failure:
        return str(failure).partition(" at non-")[0]
    return output.grad.tolist()


for size in (4, 3, 1):
    print(f"gradient of {size} outputs against 3 targets: {gradient(size)}")

assert set(found.values()) == {"mat1 and mat2 shapes cannot be multiplied"}
assert "must match the size" in gradient(4)
assert gradient(3) == [0.0, -2.0, -4.0] and gradient(1) == [-6.0]
