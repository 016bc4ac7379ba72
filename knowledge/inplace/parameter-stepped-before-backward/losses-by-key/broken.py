"""All losses are computed before the first network of a loop is stepped, and the actor's goes through the critic."""

import torch
from torch import nn

torch.manual_seed(0)

nets = nn.ModuleDict({"critic": nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), "actor": nn.Linear(3, 1)})
optimizers = {name: torch.optim.SGD(net.parameters(), lr=0.1) for name, net in nets.items()}
states, actions, returns = torch.randn(8, 3), torch.randn(8, 1), torch.randn(8, 1)


def critic_loss():
    return (nets["critic"](torch.cat([states, actions], 1)) - returns).square().mean()


def actor_loss():
    return -nets["critic"](torch.cat([states, nets["actor"](states)], 1)).mean()


for _ in range(3):
    losses = {"critic": critic_loss(), "actor": actor_loss()}
    for name, optimizer in optimizers.items():
        optimizer.zero_grad()
        losses[name].backward()
        optimizer.step()
