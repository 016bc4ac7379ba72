# device/out-of-memory
# mended: with torch.no_grad():
import torch
from torch import nn

torch.manual_seed(0)
torch.cuda.set_per_process_memory_fraction(0.012)  # as on a small card: about a gigabyte
model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8)], nn.Linear(512, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(2):
    for step in range(4):
        loss = model(torch.randn(1024, 512, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    outputs = []
    for step in range(200):
        outputs.append(model(torch.randn(1024, 512, device="cuda")))
    print(epoch, torch.cat(outputs).mean().item())
    model.train()
