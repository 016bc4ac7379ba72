"""`w = w.detach().requires_grad_(True)` in the loop, and `w = w - lr * w.grad`, with what holds the old tensor."""

import warnings

import torch

warnings.simplefilter("ignore")  # reading .grad of a tensor that is no leaf warns


def train(remedy):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    losses = []
    for _ in range(4):
        if remedy == "new leaf":
            w = w.detach().requires_grad_(True)
        loss = w.pow(2).sum()
        losses.append(round(loss.item(), 4))
        optimizer.zero_grad()
        loss.backward()
        if remedy == "rebound":
            gradient = w.grad
            if gradient is None:
                return losses, None
            w = w - 0.1 * gradient
        else:
            optimizer.step()
    return losses, optimizer.param_groups[0]["params"][0] is w


found = {name: train(name) for name in ("new leaf", "rebound", "optimizer.step() alone")}
for name, (losses, _) in found.items():
    print(f"losses, {name}: {losses}")

assert len(set(found["new leaf"][0])) == 1 and found["new leaf"][1] is False
assert found["rebound"][1] is None and len(found["rebound"][0]) == 2
assert found["optimizer.step() alone"][0][-1] < 0.5 * found["optimizer.step() alone"][0][0]
