"""Features computed under inference_mode are the input of a head that is trained."""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(6, 8), nn.ReLU()).requires_grad_(False)
head = nn.Linear(8, 3)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
with torch.no_grad():
    features = backbone(torch.randn(5, 6))
loss = nn.functional.cross_entropy(head(features), torch.tensor([0, 1, 2, 0, 1]))
loss.backward()
optimizer.step()
