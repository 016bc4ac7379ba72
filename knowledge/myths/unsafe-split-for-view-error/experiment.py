"""`unsafe_split` and `unsafe_chunk` where a write to a view of several outputs is refused."""

import torch

FORMS = {
    "chunk": lambda h: h.chunk(2),
    "unsafe_chunk": lambda h: h.unsafe_chunk(2),
    "chunk, out of place": None,
}
found = {}
for name, split in FORMS.items():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    h = x * 1
    try:
        if split is None:
            first, second = h.chunk(2)
            h = torch.cat([first * 10, second])
        else:
            split(h)[0].mul_(10)
        h.pow(2).sum().backward()
        found[name] = x.grad.tolist()
    except RuntimeError as failure:
        found[name] = str(failure).partition(".")[0]
    print(f"gradient, {name}: {found[name]}")

assert "is a view and is being modified inplace" in found["chunk"]
assert found["chunk, out of place"] == [200.0, 400.0, 6.0, 8.0]
assert found["unsafe_chunk"] != found["chunk, out of place"]
