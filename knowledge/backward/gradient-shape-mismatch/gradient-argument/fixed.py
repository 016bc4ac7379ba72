import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Linear(4, 1)
optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.001)
one = torch.ones(1)
score = critic(torch.rand(8, 4)).mean()
optimizer.zero_grad()
score.backward()
optimizer.step()
