"""`retain_graph=True` where an in-place write overwrote a saved tensor."""

import torch
from torch import nn

torch.manual_seed(0)
layer, x = nn.Linear(3, 4), torch.randn(5, 3)


def error_of(**options):
    h = torch.tanh(layer(x))
    h += 1
    try:
        h.sum().backward(**options)
    except RuntimeError as failure:
        return str(failure).partition(":")[0]
    return "none"


plain, retained = error_of(), error_of(retain_graph=True)
print("error:", plain)
print("error, retain_graph=True:", retained)
print("gradient after the remedy:", layer.weight.grad)
(torch.tanh(layer(x)) + 1).sum().backward()
print(f"gradient norm, written out of place: {layer.weight.grad.norm():.4f}")

assert plain == retained != "none"
assert layer.weight.grad.norm() > 0
