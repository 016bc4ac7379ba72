import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
trainable = filter(lambda p: p.requires_grad, model.parameters())
count = sum(p.numel() for p in trainable)
optimizer = torch.optim.SGD(trainable, lr=0.1)

x, target = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])
loss = nn.functional.cross_entropy(model(x), target)
loss.backward()
optimizer.step()
