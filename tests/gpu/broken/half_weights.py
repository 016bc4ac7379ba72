# nan/low-precision-overflow
# mended: net = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 20)).to(device).bfloat16()
# mended: x = torch.randn(64, 20, device=device).bfloat16()
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda"
net = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 20)).to(device).half()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(30):
    x = torch.randn(64, 20, device=device).half()
    loss = nn.functional.mse_loss(net(x), x.flip(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
