import torch
from torch import nn

torch.manual_seed(0)
model, class_weights = nn.Linear(4, 3), nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([*model.parameters(), class_weights], lr=0.1)
inputs, labels = torch.rand(8, 4), torch.randint(3, (8,))
loss = nn.functional.cross_entropy(model(inputs), labels, weight=class_weights)
optimizer.zero_grad()
loss.backward()
optimizer.step()
