"""A GAN in the right order: the critic sees detached samples, each loss is of the current weights."""

import torch
from torch import nn
from torch.nn.functional import softplus

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
first = torch.optim.Adam(critic.parameters(), lr=1e-3)
second = torch.optim.Adam(generator.parameters(), lr=1e-3)
for step in range(8):
    fake = generator(torch.randn(16, 2))
    first.zero_grad()
    (softplus(critic(fake.detach())) + softplus(-critic(torch.randn(16, 4)))).mean().backward()
    first.step()
    second.zero_grad()
    softplus(-critic(fake)).mean().backward()
    second.step()
