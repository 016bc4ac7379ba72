# device/mixed-devices
# mended: loader = DataLoader(data, batch_size=16, shuffle=True, pin_memory=False)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda")
data = TensorDataset(torch.randn(64, 8).to(device), torch.randn(64, 1).to(device))
loader = DataLoader(data, batch_size=16, shuffle=True, pin_memory=True)
model = nn.Linear(8, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
