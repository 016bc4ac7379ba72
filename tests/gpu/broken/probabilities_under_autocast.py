# precision/autocast-misuse
# mended: predicted = net(x)
# mended: with torch.autocast("cuda", enabled=False):
# mended: loss = criterion(predicted.float(), y)
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda"


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 1))

    def forward(self, x):
        return torch.sigmoid(self.body(x)).squeeze(-1)


net = Detector().to(device)
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
for step in range(10):
    x = torch.randn(64, 20, device=device)
    y = (x[:, 0] > 0).float()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(net(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
