import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Linear(4, 3)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)


@torch.no_grad()
def act(states):
    chosen = Categorical(logits=policy(states))
    actions = chosen.sample()
    return actions, chosen.log_prob(actions)


states, gains = torch.rand(8, 4), torch.randn(8)
actions, old = act(states)
for _ in range(3):
    new = Categorical(logits=policy(states)).log_prob(actions)
    loss = -((new - old).exp() * gains).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
