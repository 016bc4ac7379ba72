"""`loss.requires_grad_(True)` on a loss whose graph was cut by `detach()`."""

import torch
from torch import nn


def train(*, remedy):
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        output = model(x).detach() if remedy else model(x)
        loss = (output - 1).pow(2).mean()
        if remedy:
            loss.requires_grad_(True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 4))
    return model.weight.grad, losses


remedy, still = train(remedy=True)
meant, falling = train(remedy=False)
print("gradient of the weight, requires_grad_(True):", remedy)
print(f"gradient norm of the weight, graph kept: {meant.norm():.4f}")
print("losses, requires_grad_(True):", still)
print("losses, graph kept:", falling)

assert remedy is None and meant.norm() > 0
assert len(set(still)) == 1 and falling[-1] < falling[0]
