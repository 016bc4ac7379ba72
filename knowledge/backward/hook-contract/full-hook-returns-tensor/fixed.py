import torch
from torch import nn


def damp(module, grad_input, grad_output):
    return (0.5 * grad_input[0],)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
model[2].register_full_backward_hook(damp)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.rand(16, 4)).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
