"""A mixture of experts, most of which see nothing in a step, and one never."""

import torch
from torch import nn

torch.manual_seed(0)
router, experts = nn.Linear(4, 7), nn.ModuleList(nn.Linear(4, 4) for _ in range(8))
optimizer = torch.optim.Adam([*router.parameters(), *experts.parameters()], lr=1e-2)
for step in range(8):
    x = torch.randn(3, 4)
    weight, chosen = router(x).softmax(1).max(1)
    y = torch.stack([weight[i] * experts[int(chosen[i])](x[i]) for i in range(3)])
    optimizer.zero_grad()
    (y - x).square().mean().backward()
    optimizer.step()
