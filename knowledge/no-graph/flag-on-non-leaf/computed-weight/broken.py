import torch
from torch import nn
from torch.nn.utils import prune

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
prune.l1_unstructured(model[0], "weight", amount=0.5)
model[0].weight.requires_grad = False
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)

x, target = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])
loss = nn.functional.cross_entropy(model(x), target)
loss.backward()
optimizer.step()
