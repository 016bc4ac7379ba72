"""Adding `0 * parameter.sum()` to the loss so that every parameter gets a gradient."""

import torch
from torch import nn


def train(*, remedy, broken=False):
    torch.manual_seed(0)
    used, unused = nn.Linear(3, 1), nn.Linear(3, 1)
    if broken:
        nn.init.constant_(unused.weight, float("inf"))
    optimizer = torch.optim.AdamW([*used.parameters(), *unused.parameters()], lr=0.1, weight_decay=0.1)
    before = unused.weight.norm().item()
    for _ in range(10):
        loss = used(torch.randn(5, 3)).pow(2).mean()
        if remedy:
            loss = loss + 0 * sum(one.sum() for one in unused.parameters())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return unused.weight.grad, unused.weight.norm().item() / before, loss.item()


gradient, ratio, _ = train(remedy=True)
nothing, kept, _ = train(remedy=False)
_, _, loss = train(remedy=True, broken=True)
print("gradient of the unused layer, with the zero term:", gradient.tolist())
print("gradient of the unused layer, without:", nothing)
print(f"its weight norm after 10 steps of AdamW, with and without: {ratio:.4f} {kept:.4f}")
print("loss where an unused weight is inf:", loss)

assert not gradient.any() and nothing is None
assert ratio < 0.95 and kept == 1.0 and loss != loss
