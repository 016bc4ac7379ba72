import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential()
model.add_module("backbone", nn.Linear(8, 16))
model.add_module("head", nn.Linear(16, 3))
trainable = [p for name, p in model.named_parameters() if "classifier" in name]
optimizer = torch.optim.SGD(trainable, lr=0.1)

x, target = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])
loss = nn.functional.cross_entropy(model(x), target)
loss.backward()
optimizer.step()
