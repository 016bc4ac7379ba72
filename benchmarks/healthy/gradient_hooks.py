"""Hooks on tensors, parameters and modules; one reverses a gradient (domain-adversarial training)."""

import torch
from torch import nn

torch.manual_seed(0)
features, label, domain = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 2)
features.register_full_backward_hook(lambda module, given, got: None)
label.weight.register_hook(lambda gradient: gradient.clamp(-1, 1))
label.bias.register_hook(lambda gradient: gradient.mul_(0.5))  # in place, and nobody else has it
optimizer = torch.optim.SGD([*features.parameters(), *label.parameters(), *domain.parameters()], lr=0.1)
for step in range(8):
    hidden = features(torch.randn(16, 4)).relu()
    turned = hidden.view_as(hidden)
    turned.register_hook(lambda gradient: -0.1 * gradient)
    loss = nn.functional.cross_entropy(label(hidden), torch.randint(0, 2, (16,)))
    loss = loss + nn.functional.cross_entropy(domain(turned), torch.randint(0, 2, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
