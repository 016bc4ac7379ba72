# device/mixed-devices
# mended: a = a.to(accelerator.device)
# mended: b = b.to(accelerator.device)
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator()
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
x = torch.randn(128, 8)
y = x[:, :4].argmax(1)
train = DataLoader(TensorDataset(x[:96], y[:96]), batch_size=16, shuffle=True)
valid = DataLoader(TensorDataset(x[96:], y[96:]), batch_size=16)
net, optimizer, train = accelerator.prepare(net, optimizer, train)
for epoch in range(2):
    net.train()
    for a, b in train:
        loss = nn.functional.cross_entropy(net(a), b)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    net.eval()
    hits = 0
    with torch.no_grad():
        for a, b in valid:
            hits += (net(a).argmax(1) == b).sum().item()
    print(epoch, hits / 32)
