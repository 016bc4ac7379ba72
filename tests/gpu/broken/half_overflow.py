# nan/low-precision-overflow
# mended: with torch.autocast("cuda", dtype=torch.bfloat16):
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for step in range(12):
    x, y = 1e5 * torch.rand(32, 64, device="cuda"), torch.randint(4, (32,), device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
