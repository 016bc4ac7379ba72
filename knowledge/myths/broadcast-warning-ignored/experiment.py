"""`mse_loss` of `[n, 1]` against `[n]` with its warning ignored."""

import warnings

import torch
from torch import nn


def train(*, squeezed):
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 8).unsqueeze(1)
    target, model = 3 * x.squeeze(1), nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(200):
        output = model(x).squeeze(1) if squeezed else model(x)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(output, target)
        loss.backward()
        optimizer.step()
    return model.weight.item(), loss.item()


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    remedy, loss = train(squeezed=False)
meant, small = train(squeezed=True)
print("warning:", str(caught[0].message).partition(" This will")[0])
print(f"slope learnt (3 is right), [8, 1] against [8]: {remedy:.4f}, loss {loss:.4f}")
print(f"slope learnt, [8] against [8]: {meant:.4f}, loss {small:.4f}")

assert "Using a target size" in str(caught[0].message)
assert abs(remedy) < 0.01 and abs(meant - 3) < 0.01
