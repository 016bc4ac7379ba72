"""A frozen tower runs under no_grad inside a reentrant segment whose input requires grad."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
stem, tower, head = nn.Linear(4, 8), nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 1)


def frozen(x):
    with torch.no_grad():
        return torch.relu(tower(x))


hidden = stem(torch.randn(6, 4))
features = checkpoint(frozen, hidden, use_reentrant=True)
loss = head(hidden + features).pow(2).mean()
loss.backward()
