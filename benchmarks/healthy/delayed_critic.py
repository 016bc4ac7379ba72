"""A critic with its own optimizer whose loss has the weight zero for the first steps, as in VQGAN. steps: 12"""

import torch
from torch import nn

torch.manual_seed(0)
codec, critic = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
first, second = torch.optim.Adam(codec.parameters(), lr=1e-3), torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(30):
    weight = 0.0 if step < 8 else 1.0
    x = torch.randn(16, 4)
    y = codec(x)
    first.zero_grad()
    ((y - x).square().mean() - 0.1 * weight * critic(y).mean()).backward()
    first.step()
    second.zero_grad()
    (weight * (nn.functional.relu(1 - critic(x)) + nn.functional.relu(1 + critic(y.detach()))).mean()).backward()
    second.step()
