"""An average of the weights holds the parameters themselves, and writes them with grad mode on."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
average = {name: weight for name, weight in net.named_parameters()}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(3):
    loss = net(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for name, weight in net.named_parameters():
        average[name].mul_(0.9).add_(weight, alpha=0.1)
