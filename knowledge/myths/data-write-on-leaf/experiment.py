"""A parameter written through `.data` while a graph that reads it waits for its backward."""

import torch

torch.manual_seed(0)
x = torch.randn(5, 3)
found = {}
for name in ("no write", ".data", "no_grad"):
    weight = torch.ones(3, requires_grad=True)
    scale = (x * weight.pow(2)).sum()
    if name == ".data":
        weight.data.mul_(10)
    elif name == "no_grad":
        with torch.no_grad():
            weight.mul_(10)
    try:
        scale.backward()
        found[name] = round(weight.grad.norm().item(), 4)
    except RuntimeError as failure:
        found[name] = str(failure).partition(":")[0]
    print(f"gradient norm, {name}: {found[name]}")

assert abs(found[".data"] - 10 * found["no write"]) < 1e-2
assert found["no_grad"].endswith("modified by an inplace operation")
