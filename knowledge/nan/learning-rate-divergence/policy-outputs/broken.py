"""A policy gradient without a bound on its step: penalised actions are pushed away until the mean is not finite."""

import torch
from torch import nn

torch.manual_seed(0)
mean, log_std = nn.Linear(4, 1), nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([*mean.parameters(), log_std], lr=0.5)
for episode in range(100):
    observation = torch.randn(64, 4)
    distribution = torch.distributions.Normal(mean(observation), log_std.exp())
    action = distribution.sample()
    reward = -(action - observation[:, :1]).pow(2)
    loss = -(distribution.log_prob(action) * reward).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
