"""What anomaly mode costs a training step that has nothing wrong."""

import time
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # anomaly mode announces itself
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(40)])
x = torch.randn(4, 8)


def seconds(*, anomaly):
    best = float("inf")
    with torch.autograd.set_detect_anomaly(anomaly):
        for _ in range(15):
            start = time.process_time()
            model.zero_grad()
            model(x).pow(2).mean().backward()
            best = min(best, time.process_time() - start)
    return best


def gradient():
    return torch.cat([one.grad.flatten() for one in model.parameters()])


plain = seconds(anomaly=False)
meant = gradient()
slow = seconds(anomaly=True)
print(f"times the plain step: {slow / plain:.1f}")
print("same gradients:", torch.equal(meant, gradient()))

assert slow > 1.5 * plain and torch.equal(meant, gradient())
