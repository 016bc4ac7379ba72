"""`with torch.no_grad()` round a part of the forward to get rid of an error or of memory."""

import torch
from torch import nn


def gradients(*, remedy):
    torch.manual_seed(0)
    encoder, block, head = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 1)
    hidden = encoder(torch.randn(5, 3))
    with torch.set_grad_enabled(not remedy):
        hidden = torch.relu(block(hidden))
    loss = head(hidden).pow(2).mean()
    loss.backward()
    return [None if one.weight.grad is None else round(one.weight.grad.norm().item(), 4) for one in (encoder, block, head)]


remedy, meant = gradients(remedy=True), gradients(remedy=False)
for name, one, other in zip(("encoder", "block", "head"), remedy, meant):
    print(f"gradient norm of the {name}, block under no_grad and meant: {one} {other}")

assert remedy[:2] == [None, None] and remedy[2] == meant[2]
assert meant[0] > 0 and meant[1] > 0
