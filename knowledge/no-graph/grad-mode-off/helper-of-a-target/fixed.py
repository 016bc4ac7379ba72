"""One helper without gradients gives both the fixed target and what is trained towards it."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def scores(x):
    return net(x)


for _ in range(3):
    x = torch.randn(8, 4)
    target = scores(x).softmax(-1).detach()
    noisy = scores(x + 0.1 * torch.randn(8, 4)).log_softmax(-1)
    optimizer.zero_grad()
    F.kl_div(noisy, target, reduction="batchmean").backward()
    optimizer.step()
