"""`retain_graph=True` where backward is called twice on one loss."""

import torch
from torch import nn

torch.manual_seed(0)
model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(5, 3)


def gradients(calls):
    model.zero_grad()
    loss = model(x).pow(2).mean()
    for _ in range(calls):
        loss.backward(retain_graph=True)
    return torch.cat([one.grad.flatten() for one in model.parameters()])


once, twice = gradients(1), gradients(2)
print(f"gradient norm, one backward: {once.norm():.4f}")
print(f"gradient norm, two with retain_graph=True: {twice.norm():.4f}")
print(f"ratio: {twice.norm() / once.norm():.4f}")

assert torch.allclose(twice, 2 * once)
