# nan/log-of-zero device/device-side-assert
# mended: criterion = nn.BCEWithLogitsLoss()
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda"
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1)).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
criterion = nn.BCELoss()
for step in range(8):
    x, y = torch.randn(16, 6, device=device), torch.randint(2, (16, 1), device=device).float()
    loss = criterion(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
