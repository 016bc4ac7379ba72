"""An actor-critic with a learning rate far too high: the critic diverges, its advantages make the policy's logits NaN."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Linear(4, 1)
optimizer = torch.optim.SGD([*policy.parameters(), *critic.parameters()], lr=0.001)
for episode in range(100):
    observation = 10.0 * torch.randn(64, 4)
    distribution = torch.distributions.Categorical(logits=policy(observation))
    action = distribution.sample()
    reward = (action == (observation[:, 0] > 0)).float()
    advantage = reward - critic(observation).squeeze(-1)
    loss = advantage.pow(2).mean() - (distribution.log_prob(action) * advantage.detach()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
