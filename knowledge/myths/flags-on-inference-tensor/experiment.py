"""`enable_grad` inside inference mode, `detach()`, `requires_grad_` and `clone()` on an inference tensor."""

import torch
from torch import nn

layer = nn.Linear(3, 1)
with torch.inference_mode():
    features = torch.ones(2, 3)


def inside():
    with torch.inference_mode(), torch.enable_grad():
        layer(torch.ones(2, 3)).sum().backward()


WAYS = {
    "enable_grad inside": inside,
    "detach()": lambda: layer(features.detach()).sum().backward(),
    "requires_grad_(True)": lambda: layer(features.requires_grad_(True)).sum().backward(),
    "clone() outside": lambda: layer(features.clone()).sum().backward(),
}
found = {}
for name, way in WAYS.items():
    layer.zero_grad()
    try:
        way()
        found[name] = layer.weight.grad.tolist()
    except RuntimeError as failure:
        found[name] = str(failure).partition(".")[0]
    print(f"gradient, {name}: {found[name]}")

*refused, copied = found.values()
assert all(isinstance(one, str) for one in refused)
assert copied == [[2.0, 2.0, 2.0]]
