# precision/dtype-mismatch
# mended: loss = nn.functional.cross_entropy(model(images.to(torch.bfloat16)), torch.randint(4, (4,), device="cuda"))
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4)).cuda().to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(8):
    images = torch.rand(4, 3, 8, 8, device="cuda")
    loss = nn.functional.cross_entropy(model(images), torch.randint(4, (4,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
