"""`retain_graph=True` for two losses over one encoder, with an optimizer step between their backwards."""

import torch
from torch import nn


def train(*, step_between):
    torch.manual_seed(0)
    encoder, first, second = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*encoder.parameters(), *first.parameters()], lr=0.1)
    shared = first(torch.tanh(encoder(torch.randn(5, 3))))
    one, two = shared.pow(2).mean(), second(torch.tanh(shared)).pow(2).mean()
    one.backward(retain_graph=True)
    if step_between:
        optimizer.step()
    try:
        two.backward()
    except RuntimeError as failure:
        return str(failure).partition(":")[0], None
    return "none", encoder.weight.grad


error, _ = train(step_between=True)
print("error, step between the two backwards:", error)
later, gradient = train(step_between=False)
print("error, step after both:", later)
print(f"gradient norm of the encoder, step after both: {gradient.norm():.4f}")

assert error.endswith("modified by an inplace operation")
assert later == "none" and gradient.norm() > 0
