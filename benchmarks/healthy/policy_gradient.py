"""REINFORCE: the loss is the log probability of sampled actions times returns, with entropy."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(8):
    logged, rewards = [], []
    state = torch.randn(4)
    for _ in range(5):
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        logged.append(choice.log_prob(action) + 0.01 * choice.entropy())
        rewards.append(float(state.sum() > 0) if action == 1 else float(state.sum() <= 0))
        state = torch.randn(4)
    returns = torch.tensor([sum(rewards[i:]) for i in range(5)])
    optimizer.zero_grad()
    loss = -(torch.stack(logged) * (returns - returns.mean())).sum()
    loss.backward()
    optimizer.step()
