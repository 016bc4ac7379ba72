import torch
from torch import nn

torch.manual_seed(0)
norms = []
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
model[2].register_backward_hook(lambda module, grad_input, grad_output: norms.append(grad_output[0].norm()))
model[2].register_full_backward_hook(lambda module, grad_input, grad_output: norms.append(grad_output[0].norm()))
model(torch.rand(16, 4)).pow(2).mean().backward()
