"""`if loss.isnan(): continue`, where the loss is finite and its gradient is not."""

import torch
from torch import nn


def train(eps):
    torch.manual_seed(0)
    model = nn.Linear(3, 4, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [torch.randn(5, 3) for _ in range(20)]
    batches[4][0] = 0.0  # one padded row in batch 4
    stepped = skipped = 0
    for x in batches:
        loss = (model(x).pow(2).sum(1) + eps).sqrt().mean()
        if loss.isnan():
            skipped += 1
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        stepped += 1
    return stepped, skipped, int(model.weight.isnan().sum())


stepped, skipped, lost = train(eps=0.0)
print("steps made, batches skipped, NaN weights (of 12):", stepped, skipped, lost)
fixed = train(eps=1e-12)
print("the same with an epsilon inside the root:", *fixed)

assert (stepped, skipped, lost) == (5, 15, 12)
assert fixed == (20, 0, 0)
