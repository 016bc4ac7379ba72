import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
actor = nn.Linear(4, 2)
critic = nn.Linear(5, 1).requires_grad_(False)
optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
state = torch.randn(8, 4)
mean, log_std = actor(state).chunk(2, dim=1)
action = Normal(mean, log_std.exp()).rsample()
value = critic(torch.cat([state, action], dim=1))
loss = -value.mean()
loss.backward()
optimizer.step()
