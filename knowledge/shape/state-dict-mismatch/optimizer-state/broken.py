"""AdamW's state is loaded for the same parameters in another order."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
inputs = torch.randn(2, 8)


def train_step(optimizer):
    optimizer.zero_grad()
    model(inputs).pow(2).mean().backward()
    optimizer.step()


first = torch.optim.AdamW([*model[0].parameters(), *model[2].parameters()])
train_step(first)
resumed = torch.optim.AdamW([*model[2].parameters(), *model[0].parameters()])
resumed.load_state_dict(first.state_dict())
train_step(resumed)
