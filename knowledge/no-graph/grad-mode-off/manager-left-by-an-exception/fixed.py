"""A context manager switches grad mode off, and an exception in its block goes past what switches it on again."""

import contextlib

import torch
from torch import nn


@contextlib.contextmanager
def scoring(model):
    was_enabled = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        yield model
    finally:
        torch.set_grad_enabled(was_enabled)


def score(model, x):
    with scoring(model):
        if len(x) == 0:
            raise ValueError("nothing to score")
        return model(x).mean().item()


torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for held_out in (torch.randn(4, 8), torch.randn(0, 8), torch.randn(4, 8)):
    loss = nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.randint(0, 3, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    try:
        print(score(model, held_out))
    except ValueError:
        print("not scored")
