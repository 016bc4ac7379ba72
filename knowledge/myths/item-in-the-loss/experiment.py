"""`.item()` on a part of the loss, to save memory or to get a number."""

import torch
from torch import nn


def gradients(form):
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(5, 3)
    task, penalty = model(x).mean(), 10 * model.weight.pow(2).sum()
    loss = {"tensor": task + penalty, ".item()": task + penalty.item(), "none": task}[form]
    loss.backward()
    return round(loss.item(), 4), model.weight.grad


found = {form: gradients(form) for form in ("tensor", ".item()", "none")}
for form, (loss, gradient) in found.items():
    print(f"loss and gradient norm, penalty as {form}: {loss} {gradient.norm():.4f}")
try:
    sum(loss for loss, _ in found.values()).backward()
    error = "none"
except AttributeError as failure:
    error = str(failure)
print("backward of a sum of items:", error)

assert found["tensor"][0] == found[".item()"][0]
assert torch.equal(found[".item()"][1], found["none"][1])
assert not torch.allclose(found["tensor"][1], found["none"][1])
assert "has no attribute 'backward'" in error
