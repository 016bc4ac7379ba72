"""A lower learning rate where the first backward already gives NaN."""

import torch
from torch import nn


def first_step(lr, eps=0.0):
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4, bias=False), torch.randn(5, 3)
    x[0] = 0.0  # a padded row: its norm is the root of 0
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loss = (model(x).pow(2).sum(1) + eps).sqrt().mean()
    loss.backward()
    optimizer.step()
    return loss.item(), model.weight.grad.norm().item(), int(model.weight.isnan().sum())


for lr in (1e-1, 1e-4, 1e-8, 0.0):
    loss, norm, lost = first_step(lr)
    print(f"loss, gradient norm, NaN weights after a step at lr={lr:g}: {loss:.4f} {norm} {lost} of 12")
    assert norm != norm and lost == 12
loss, norm, lost = first_step(1e-1, eps=1e-12)
print(f"with an epsilon inside the root: {loss:.4f} {norm:.4f} {lost} of 12")

assert norm > 0 and lost == 0
