"""MAML: an inner step with create_graph, differentiated through."""

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(6):
    optimizer.zero_grad()
    total = 0.0
    for task in range(3):
        x = torch.randn(8, 1)
        weights = dict(model.named_parameters())
        loss = (functional_call(model, weights, x) - (x + task).sin()).square().mean()
        slopes = torch.autograd.grad(loss, weights.values(), create_graph=True)
        weights = {name: one - 0.1 * slope for (name, one), slope in zip(weights.items(), slopes)}
        total = total + (functional_call(model, weights, x) - (x + task).sin()).square().mean()
    total.backward()
    optimizer.step()
