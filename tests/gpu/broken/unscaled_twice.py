# precision/scaler-misuse
# mended:
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
for step in range(8):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(8, 16, device="cuda")).float().square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
