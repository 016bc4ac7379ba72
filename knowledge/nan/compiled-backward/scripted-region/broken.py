"""A scripted function takes a root at 0; from its second call on it is one node, which hides the root."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


@torch.jit.script
def distance(a, b):
    return ((a - b) ** 2).sum(-1).sqrt()


torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
for step in range(4):
    anchor, positive = torch.randn(16, 8), torch.randn(16, 8)
    if step == 3:
        positive[5] = anchor[5]
    loss = distance(encoder(anchor), encoder(positive)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
