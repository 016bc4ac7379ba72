"""Two losses of one forward, the first with retain_graph, and both before the step."""

import torch
from torch import nn

torch.manual_seed(0)
body, first, second = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
optimizer = torch.optim.Adam([*body.parameters(), *first.parameters(), *second.parameters()], lr=1e-2)
for step in range(8):
    hidden = body(torch.randn(16, 4)).tanh()
    optimizer.zero_grad()
    first(hidden).square().mean().backward(retain_graph=True)
    nn.functional.cross_entropy(second(hidden), torch.randint(0, 2, (16,))).backward()
    optimizer.step()
