"""PPO: old log probabilities without a graph, several epochs over one batch, a loss that starts at zero."""

import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-2)
for rollout in range(3):
    states = torch.randn(32, 4)
    with torch.no_grad():
        actions = torch.distributions.Categorical(logits=actor(states)).sample()
        before = torch.distributions.Categorical(logits=actor(states)).log_prob(actions)
        rewards = states.gather(1, actions[:, None]).squeeze(1)
        gain = rewards - critic(states).squeeze(1)
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    for epoch in range(4):
        ratio = (torch.distributions.Categorical(logits=actor(states)).log_prob(actions) - before).exp()
        surrogate = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        loss = (critic(states).squeeze(1) - rewards).square().mean() - surrogate
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
