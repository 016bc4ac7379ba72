"""`detach()` round the write into a key/value cache, against a cache that is concatenated."""

import torch
from torch import nn


def gradients(*, remedy):
    torch.manual_seed(0)
    query, key, value = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    x = torch.randn(1, 3, 4)
    keys, values, loss = torch.zeros(1, 3, 4), torch.zeros(1, 3, 4), 0.0
    for t in range(3):
        k, v = key(x[:, t : t + 1]), value(x[:, t : t + 1])
        if remedy:
            keys[:, t : t + 1], values[:, t : t + 1] = k.detach(), v.detach()
            seen_keys, seen_values = keys[:, : t + 1].clone(), values[:, : t + 1].clone()
        else:
            keys = k if t == 0 else torch.cat([keys, k], 1)
            values = v if t == 0 else torch.cat([values, v], 1)
            seen_keys, seen_values = keys, values
        weights = torch.softmax(query(x[:, t : t + 1]) @ seen_keys.transpose(1, 2), -1)
        loss = loss + (weights @ seen_values).pow(2).sum()
    loss.backward()
    norms = [None if layer.weight.grad is None else layer.weight.grad.norm().item() for layer in (query, key, value)]
    return round(loss.item(), 4), norms


loss, remedy = gradients(remedy=True)
same_loss, meant = gradients(remedy=False)
print("loss, detached write and concatenation:", loss, same_loss)
for name, one, other in zip(("query", "key", "value"), remedy, meant):
    print(f"gradient norm of the {name} projection, detached and meant: {one and round(one, 4)} {other:.4f}")

assert loss == same_loss
assert remedy[1] is None and remedy[2] is None
assert meant[1] > 0 and meant[2] > 0
