"""REINFORCE on an environment of NumPy that writes its state in place: what the policy is given is a copy, its rewards share memory."""

import numpy as np
import torch
from torch import nn


class Carts:
    def __init__(self, count):
        self.random = np.random.default_rng(0)
        self.state = np.zeros((count, 2), np.float32)
        self.rewards = np.zeros(count, np.float32)

    def reset(self):
        self.state[:] = self.random.uniform(-1, 1, self.state.shape)
        return self.state

    def step(self, push):
        self.state[:, 1] += 0.1 * push
        self.state[:, 0] += 0.1 * self.state[:, 1]
        self.rewards[:] = -np.abs(self.state[:, 0])
        return self.state, self.rewards.copy()


torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
carts = Carts(8)
for _ in range(10):
    observation, logs, rewards = carts.reset(), [], []
    for _ in range(6):
        chosen = torch.distributions.Categorical(logits=policy(torch.tensor(observation)))
        action = chosen.sample()
        logs.append(chosen.log_prob(action))
        observation, reward = carts.step(action.numpy() - 1.0)
        rewards.append(torch.from_numpy(reward))
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(logs) * (returns - returns.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"reward {torch.stack(rewards).mean().item():.4f}")
