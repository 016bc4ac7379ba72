# device/mixed-devices
# mended: inputs, targets = features[rows.cpu()].cuda(), labels[rows.cpu()].cuda()
import torch
from torch import nn

torch.manual_seed(0)
features, labels = torch.randn(100, 8), torch.randint(3, (100,))
model = nn.Linear(8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    order = torch.randperm(100, device="cuda")
    for start in range(0, 100, 25):
        rows = order[start : start + 25]
        inputs, targets = features[rows].cuda(), labels[rows].cuda()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
