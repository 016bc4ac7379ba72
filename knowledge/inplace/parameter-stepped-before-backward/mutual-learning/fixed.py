"""Two networks learn from each other: the second one's loss goes back through the first one's prediction."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

nets = [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)) for _ in range(2)]
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
x, labels = torch.randn(12, 4), torch.randint(0, 3, (12,))

for _ in range(3):
    first, second = (net(x) for net in nets)
    losses = [
        F.cross_entropy(own, labels) + F.kl_div(F.log_softmax(own, 1), F.softmax(other, 1).detach(), reduction="batchmean")
        for own, other in ((first, second), (second, first))
    ]
    for loss, optimizer in zip(losses, optimizers):
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
