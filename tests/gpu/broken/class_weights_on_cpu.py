# device/mixed-devices
# mended: criterion = nn.CrossEntropyLoss(weight=weights).to(device)
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda"
model = nn.Linear(8, 3).to(device)
weights = torch.tensor([1.0, 2.0, 0.5])
criterion = nn.CrossEntropyLoss(weight=weights)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    inputs, labels = torch.randn(16, 8, device=device), torch.randint(3, (16,), device=device)
    loss = criterion(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
