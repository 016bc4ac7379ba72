"""The angle between two embeddings of one input is taken with acos, at a cosine that rounds to 1 or above."""

import torch
from torch import nn
from torch.nn import functional as F

torch.autograd.set_detect_anomaly(True)


def angle(a, b):
    cosine = (F.normalize(a, dim=-1) * F.normalize(b, dim=-1)).sum(-1)
    return torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))


torch.manual_seed(0)
encoder = nn.Linear(16, 32)
view = torch.randn(64, 16)
loss = angle(encoder(view), encoder(view).detach()).mean()
loss.backward()
torch.optim.SGD(encoder.parameters(), lr=0.1).step()
