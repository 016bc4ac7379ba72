import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss(reduction="none")
inputs, labels = torch.rand(8, 4), torch.randint(3, (8,))
loss = criterion(model(inputs), labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()
