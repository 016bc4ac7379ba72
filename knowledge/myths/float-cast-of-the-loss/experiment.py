"""`loss.float()` where the loss overflowed in float16, against a float32 argument."""

import torch

outputs = {}
for name in ("loss.float()", "x.float() before the loss", "meant, in float32"):
    x = torch.full((8,), 300.0, dtype=torch.float32 if name.startswith("meant") else torch.float16, requires_grad=True)
    if name == "loss.float()":
        loss = x.pow(2).mean().float()
    else:
        loss = x.float().pow(2).mean()
    loss.sqrt().backward()
    outputs[name] = (loss.item(), x.grad[0].item())
    print(f"loss and gradient, {name}: {loss.item():.6g} {x.grad[0].item():.6g}")

late, early, meant = outputs.values()
assert late[0] == float("inf") and not abs(late[1]) > 0
assert early[0] == meant[0] == 90000.0 and abs(early[1] - meant[1]) < 1e-3
