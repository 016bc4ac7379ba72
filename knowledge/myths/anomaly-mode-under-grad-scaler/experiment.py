"""Anomaly mode in a float16 run with a GradScaler, whose first overflows are meant to be skipped."""

import warnings

import torch

warnings.simplefilter("ignore")


def train(*, anomaly):
    weight = torch.nn.Parameter(torch.tensor([3.0]))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**17)
    with torch.autograd.set_detect_anomaly(anomaly):
        for _ in range(4):
            optimizer.zero_grad()
            half = weight.half()
            loss = (2 * half - half).float().sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return weight.item(), scaler.get_scale()


weight, scale = train(anomaly=False)
print(f"weight after 4 steps: {weight:.4f}")
print("scale it settled at:", scale)
try:
    train(anomaly=True)
    error = "none"
except RuntimeError as failure:
    error = str(failure)
print("anomaly mode:", error)

assert weight < 3.0 and scale < 2.0**17
assert "returned nan values" in error
