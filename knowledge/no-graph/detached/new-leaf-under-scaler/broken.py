import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")

x, target = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])
losses = [nn.functional.cross_entropy(model(part), label) for part, label in zip(x.split(2), target.split(2))]
loss = torch.tensor(losses, requires_grad=True).sum()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
