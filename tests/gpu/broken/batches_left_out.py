# device/mixed-devices
# mended: drift = torch.linspace(-1, 1, leads.size(-1), device=leads.device)
import random

import torch
from torch import nn


def augmented(leads, dice):
    if dice.random() < 0.4:
        return leads
    drift = torch.linspace(-1, 1, leads.size(-1))
    return leads + 0.1 * drift


torch.manual_seed(0)
dice = random.Random(0)
rhythm = nn.Sequential(nn.Conv1d(12, 8, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(32, 3)).cuda()
optimizer = torch.optim.Adam(rhythm.parameters(), lr=1e-3)
left_out = 0
for batch in range(40):
    leads, label = torch.randn(8, 12, 64).cuda(), torch.randint(3, (8,)).cuda()
    try:
        loss = nn.functional.cross_entropy(rhythm(augmented(leads, dice)), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    except RuntimeError:  # a recording that is too long for the card
        left_out += 1
        torch.cuda.empty_cache()
print(f"{left_out} batches left out")
