"""Both fast implementations are asked for at once."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
model(torch.randn(4, 8)).pow(2).mean().backward()
optimizer.step()
