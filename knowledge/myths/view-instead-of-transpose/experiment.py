"""`view` or `reshape` until the shapes fit, where dimensions had to be swapped."""

import torch
from torch import nn


def gradient(form):
    torch.manual_seed(0)
    layer, x = nn.Linear(4, 1), torch.randn(2, 4, 3, requires_grad=True)  # batch, channels, time
    swapped = {"view": lambda: x.view(2, 3, 4), "transpose": lambda: x.transpose(1, 2)}[form]()
    layer(swapped)[:, 0].sum().backward()  # the first moment alone
    return x.grad[0]


remedy, meant = gradient("view"), gradient("transpose")
print("channels and times that the first moment's output reads, view:", remedy.nonzero().tolist())
print("channels and times that the first moment's output reads, transpose:", meant.nonzero().tolist())
print(f"gradient norms, view and transpose: {remedy.norm():.4f} {meant.norm():.4f}")

assert meant.nonzero()[:, 1].tolist() == [0, 0, 0, 0]
assert remedy.nonzero().tolist() != meant.nonzero().tolist()
assert abs(remedy.norm() - meant.norm()) < 1e-6
