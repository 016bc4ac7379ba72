import torch
from torch import nn


def box_loss(predicted, targets):
    total = predicted.sum() * 0
    for index, box in targets:
        total = total + nn.functional.l1_loss(predicted[index], box)
    return total


torch.manual_seed(0)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(2, 8), [(0, torch.rand(4))]), (torch.randn(2, 8), [])]
for x, targets in batches:
    loss = box_loss(model(x), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
