"""`zero_grad(set_to_none=False)` where a parameter is used in some steps only."""

import torch
from torch import nn


def train(*, set_to_none):
    torch.manual_seed(0)
    heads = nn.ModuleList([nn.Linear(3, 1), nn.Linear(3, 1)])
    optimizer = torch.optim.AdamW(heads.parameters(), lr=0.1, weight_decay=0.1)
    first = heads[1].weight.grad
    for step in range(11):
        optimizer.zero_grad(set_to_none=set_to_none)
        heads[1 if step == 0 else 0](torch.randn(5, 3)).pow(2).mean().backward()
        optimizer.step()
        if step == 0:
            start = heads[1].weight.detach().clone()
    return first, heads[1].weight.grad, (heads[1].weight - start).norm().item()


first, zero, moved = train(set_to_none=False)
_, nothing, kept = train(set_to_none=True)
print("gradient before the first backward, set_to_none=False:", first)
print("gradient of the head that is not used, set_to_none=False:", zero.tolist())
print("gradient of the head that is not used, set_to_none=True:", nothing)
print(f"how far that head moved in 10 steps, set_to_none=False and True: {moved:.4f} {kept:.4f}")

assert first is None and not zero.any() and nothing is None
assert moved > 0.1 and kept == 0.0
