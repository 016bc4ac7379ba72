"""The head alone, then the top of the trunk and then all of it, each in a parameter group of its own; a spare layer never trains."""

import torch
from torch import nn

torch.manual_seed(0)
layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)]).requires_grad_(False)
spare, head = nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for epoch in range(3):
    if epoch:
        block = [
            *layers[-epoch].requires_grad_().parameters(),
            *(spare.requires_grad_().parameters() if epoch > 1 else ()),
        ]
        optimizer.add_param_group({"params": block, "lr": 0.01})
    for _ in range(4):
        x = torch.randn(16, 8)
        with torch.set_grad_enabled(any(one.requires_grad for one in layers.parameters())):
            for layer in layers:
                x = layer(x).tanh()
        optimizer.zero_grad()
        head(x).square().mean().backward()
        optimizer.step()
