"""`x = x + 0` before an in-place write to a leaf, and after it."""

import torch

w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
copy = w + 0
copy[0] = 5.0
(copy**2).sum().backward()
print("gradient of the leaf, written copy:", w.grad.tolist())
print("the leaf keeps its values:", w.tolist())

late = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
h = torch.exp(late)
h *= 2
h = h + 0
try:
    h.sum().backward()
    error = "none"
except RuntimeError as failure:
    error = str(failure).partition(":")[0]
print("error, x + 0 after the write:", error)

assert w.grad.tolist() == [0.0, 4.0, 6.0]
assert w.tolist() == [1.0, 2.0, 3.0]
assert error.endswith("modified by an inplace operation")
