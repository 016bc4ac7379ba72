"""An optimizer a parameter, stepped by a hook as soon as its gradient is there, which is then freed."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizers = {one: torch.optim.SGD([one], lr=0.01) for one in model.parameters()}


def step_now(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for one in model.parameters():
    one.register_post_accumulate_grad_hook(step_now)
for step in range(8):
    model(torch.randn(16, 4)).square().mean().backward()
