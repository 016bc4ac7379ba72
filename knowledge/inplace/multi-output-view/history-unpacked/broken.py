"""Each day of an epidemic is written into one tensor, of which the day before was unpacked by `unbind`."""

import torch
from torch import nn


def simulate(rate, start, days):
    history = torch.empty(days + 1, *start.shape)
    history[0] = start
    for day in range(days):
        now = history[day]
        healthy, ill = now.unbind(1)
        new = rate(now).sigmoid().squeeze(1) * healthy * ill
        history[day + 1] = torch.stack([healthy - new, ill + 0.9 * new], dim=1)
    return history


torch.manual_seed(0)
rate = nn.Linear(2, 1)
loss = simulate(rate, torch.rand(4, 2), 5)[:, :, 1].pow(2).mean()
loss.backward()
