"""A hand-written gradient step changes the weights in place with grad mode on."""

import torch

torch.manual_seed(0)
x, y = torch.randn(16, 3), torch.randn(16, 1)
w = torch.randn(3, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for _ in range(3):
    loss = (x @ w + b - y).pow(2).mean()
    loss.backward()
    w -= 0.1 * w.grad
    b -= 0.1 * b.grad
    w.grad, b.grad = None, None
loss = (x @ w + b - y).pow(2).mean()
loss.backward()
