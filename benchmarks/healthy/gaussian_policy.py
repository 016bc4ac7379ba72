"""A policy over real numbers: actions are sampled as data, kept, and weighed by their probability; the critic reads them. steps: 6"""

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
log_std = nn.Parameter(torch.zeros(2))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters(), log_std], lr=1e-3)
for update in range(8):
    states, actions, log_probs, rewards = [], [], [], []
    for _ in range(12):
        state = torch.randn(4)
        policy = Normal(actor(state), log_std.exp())
        action = policy.sample()
        states.append(state)
        actions.append(action)
        log_probs.append(policy.log_prob(action).sum())
        rewards.append(-(action - 0.5).square().sum().item())
    values = critic(torch.cat([torch.stack(states), torch.stack(actions)], 1)).squeeze(1)
    returns = torch.tensor(rewards)
    loss = -(torch.stack(log_probs) * (returns - values.detach())).mean() + (values - returns).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
