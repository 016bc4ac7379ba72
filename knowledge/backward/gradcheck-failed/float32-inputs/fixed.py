import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 3, dtype=torch.float64)
inputs = torch.rand(2, 4, dtype=torch.float64)
torch.autograd.gradcheck(lambda weight: torch.tanh(inputs @ weight.T), layer.weight)
torch.tanh(layer(inputs)).mean().backward()
