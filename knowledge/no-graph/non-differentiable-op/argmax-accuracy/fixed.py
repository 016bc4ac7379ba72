import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, target = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])
logits = model(x)
accuracy = (logits.argmax(dim=1) == target).float().mean()
loss = nn.functional.cross_entropy(logits, target)
loss.backward()
optimizer.step()
