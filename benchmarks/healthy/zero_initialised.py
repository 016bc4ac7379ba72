"""A residual branch that starts at zero (as in ControlNet): what lies before the zero has no gradient at first."""

import torch
from torch import nn

torch.manual_seed(0)
branch, zero = nn.Linear(4, 8), nn.Linear(8, 4)
nn.init.zeros_(zero.weight)
nn.init.zeros_(zero.bias)
optimizers = [torch.optim.SGD(branch.parameters(), lr=0.1), torch.optim.SGD(zero.parameters(), lr=0.1)]
for step in range(8):
    x = torch.randn(16, 4)
    y = x + zero(branch(x).tanh())
    (y - 2 * x).square().mean().backward()
    for one in optimizers:
        one.step()
        one.zero_grad()
