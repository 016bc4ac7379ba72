import copy

import torch
from torch import nn
from torch.nn.utils import weight_norm

torch.manual_seed(0)
model = nn.Sequential(weight_norm(nn.Linear(8, 8)), nn.ReLU(), nn.Linear(8, 3))
teacher = copy.deepcopy(model).requires_grad_(False)
x = torch.randn(4, 8)
loss = nn.functional.mse_loss(model(x), teacher(x) + 1)
loss.backward()
