"""A whole training step is compiled, its backward included."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile(fullgraph=False, backend="aot_eager")
def train_step(x):
    loss = model(x).pow(2).mean()
    loss.backward()
    return loss


train_step(torch.randn(4, 8))
optimizer.step()
