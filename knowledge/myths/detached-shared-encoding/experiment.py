"""`detach()` on a shared encoding for the second loss, and the sum of the losses."""

import torch
from torch import nn


def gradients(form):
    torch.manual_seed(0)
    encoder, heads = nn.Linear(3, 4), [nn.Linear(4, 1), nn.Linear(4, 1)]
    shared = torch.tanh(encoder(torch.randn(5, 3)))
    one = heads[0](shared).mean()
    two = heads[1](shared.detach() if form == "detached" else shared).pow(2).mean()
    if form == "detached":
        one.backward()
        two.backward()
    else:
        (one + (two if form == "sum" else 0)).backward()
    return encoder.weight.grad


found = {form: gradients(form) for form in ("detached", "first loss alone", "sum")}
for form, gradient in found.items():
    print(f"gradient norm of the encoder, {form}: {gradient.norm():.4f}")

assert torch.allclose(found["detached"], found["first loss alone"])
assert (found["sum"] - found["detached"]).norm() > 0.1 * found["sum"].norm()
