# precision/scaler-misuse
# mended: scaler.unscale_(optimizer)
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda"
net = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 20)).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cuda")
for step in range(30):
    x = torch.randn(64, 20, device=device)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.mse_loss(net(x), x.flip(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
print(loss.item())
