"""A total summed up in inference mode is divided in place after the block."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(4, 6), torch.randint(3, (4,))) for _ in range(3)]
total = 0.0
with torch.no_grad():
    for features, labels in batches:
        total += nn.functional.cross_entropy(model(features), labels)
total /= len(batches)
loss = nn.functional.cross_entropy(model(batches[0][0]), batches[0][1])
loss.backward()
optimizer.step()
