"""`model.half()` to make dtypes agree: GradScaler and small updates."""

import torch
from torch import nn


def train(mode):
    torch.manual_seed(0)
    model = nn.Linear(4, 1, bias=False)
    nn.init.ones_(model.weight)
    model = model.half() if mode == "half()" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(100):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16, enabled=mode == "autocast"):
            loss = model(torch.ones(2, 4, dtype=model.weight.dtype)).float().mean()
        loss.backward()
        optimizer.step()
    return model.weight[0, 0].item()


scaled = nn.Linear(4, 1).half()
scaler, optimizer = torch.amp.GradScaler("cpu"), torch.optim.SGD(scaled.parameters(), lr=0.1)
scaler.scale(scaled(torch.ones(2, 4).half()).float().mean()).backward()
try:
    scaler.step(optimizer)
    scaler.unscale_(optimizer)
    error = "none"
except (RuntimeError, ValueError) as failure:
    error = str(failure)
weights = {mode: train(mode) for mode in ("half()", "autocast", "float32")}
print("GradScaler, half():", error)
for mode, weight in weights.items():
    print(f"a weight of 1 after 100 steps of 1e-4, {mode}: {weight:.4f}")

assert "Attempting to unscale FP16 gradients" in error
assert weights["half()"] == 1.0 and abs(weights["float32"] - 0.99) < 1e-4
assert abs(weights["autocast"] - 0.99) < 1e-3
