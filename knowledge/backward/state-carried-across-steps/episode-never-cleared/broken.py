"""REINFORCE whose log-probabilities and rewards of all episodes stay in the policy."""

import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.log_probs, self.rewards = [], []

    def act(self, state):
        distribution = Categorical(logits=self.layer(state))
        action = distribution.sample()
        self.log_probs.append(distribution.log_prob(action))
        return action


def update(policy, optimizer):
    returns = torch.tensor(policy.rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(policy.log_probs) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


torch.manual_seed(0)
policy = Policy()
optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
for episode in range(3):
    for state in torch.randn(6, 4):
        policy.rewards.append(float(policy.act(state)))
    update(policy, optimizer)
