"""torch.compile with the aot_eager backend: dynamo and AOTAutograd without a compiler."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


@torch.compile(backend="aot_eager")
def loss_of(x):
    return model(x).square().mean()


for step in range(8):
    optimizer.zero_grad()
    loss_of(torch.randn(16, 4)).backward()
    optimizer.step()
