"""Actor and critic in one loop: each loss is computed in its turn, and the actor's leaves gradients in the critic."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
nets = nn.ModuleDict({"critic": nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)), "actor": nn.Linear(3, 1)})
optimizers = {name: torch.optim.Adam(net.parameters(), lr=1e-3) for name, net in nets.items()}


def loss_of(name, states, actions, returns):
    if name == "critic":
        return F.mse_loss(nets["critic"](torch.cat([states, actions], 1)), returns)
    return -nets["critic"](torch.cat([states, nets["actor"](states)], 1)).mean()


for step in range(12):
    batch = torch.randn(16, 3), torch.randn(16, 1), torch.randn(16, 1)
    for name, optimizer in optimizers.items():
        optimizer.zero_grad()
        loss = loss_of(name, *batch)
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            print(name, loss.item())
