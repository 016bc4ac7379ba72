"""Every parameter gets a hook that limits its gradient, also those of the layer that was frozen before."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
model[0].requires_grad_(False)
for weight in model.parameters():
    if weight.requires_grad:
        weight.register_hook(lambda grad: grad.clamp(-0.1, 0.1))
optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.1)
loss = model(torch.randn(16, 4)).square().mean()
loss.backward()
optimizer.step()
