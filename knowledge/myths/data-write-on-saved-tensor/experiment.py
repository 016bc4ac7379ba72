"""A write through `.data`, through NumPy or through `.detach()` to silence the in-place error."""

import torch

WRITES = {
    ".data": lambda h: h.data.mul_(2),
    "NumPy": lambda h: h.detach().numpy().__imul__(2),
    ".detach()": lambda h: h.detach().mul_(2),
    "out of place": lambda h: h * 2,
}
found = {}
for name, write in WRITES.items():
    x = torch.tensor([0.5, 1.0, 1.5], requires_grad=True)
    h = torch.tanh(x)
    result = write(h)
    out = result if name == "out of place" else h
    try:
        out.sum().backward()
        found[name] = [round(one, 4) for one in x.grad.tolist()]
    except RuntimeError as failure:
        found[name] = str(failure).partition(":")[0]
    print(f"gradient, {name}: {found[name]}")

right = (2 * (1 - torch.tanh(torch.tensor([0.5, 1.0, 1.5])) ** 2)).tolist()
assert found["out of place"] == [round(one, 4) for one in right]
assert found[".data"] == found["NumPy"] != found["out of place"]
assert found[".detach()"].endswith("modified by an inplace operation")
