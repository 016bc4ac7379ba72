"""An advantage for each sample is multiplied with the log-probabilities of the two numbers of each action."""

import torch
from torch import nn
from torch.distributions import Normal


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.log_std = nn.Linear(3, 2), nn.Parameter(torch.zeros(2))

    def forward(self, state):
        return Normal(self.mean(state), self.log_std.exp())


torch.manual_seed(0)
policy = Policy()
state, advantage = torch.randn(8, 3), torch.randn(8)
action = policy(state).sample()
loss = -(policy(state).log_prob(action).sum(-1) * advantage).mean()
loss.backward()
