import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

losses = []
for _ in range(4):
    x, target = torch.randn(2, 8), torch.randint(0, 3, (2,))
    losses.append(nn.functional.cross_entropy(model(x), target))
loss = torch.stack(losses).mean()
loss.backward()
optimizer.step()
