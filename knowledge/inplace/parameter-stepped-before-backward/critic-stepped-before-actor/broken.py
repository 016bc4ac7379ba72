"""The actor's loss was computed through the critic, and the critic is stepped before its backward."""

import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
actor_opt = torch.optim.AdamW(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.AdamW(critic.parameters(), lr=1e-3)
state, action, target = torch.randn(8, 3), torch.rand(8, 1), torch.randn(8, 1)

critic_loss = nn.functional.mse_loss(critic(torch.cat([state, action], 1)), target)
actor_loss = -critic(torch.cat([state, actor(state)], 1)).mean()
critic_opt.zero_grad()
critic_loss.backward()
critic_opt.step()
actor_opt.zero_grad()
actor_loss.backward()
actor_opt.step()
