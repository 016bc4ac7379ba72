# nan/sqrt-at-zero
# mended: distance = (anchor[:, None] - anchor[None]).square().sum(-1).clamp_min(1e-12).sqrt()
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(8):
    anchor = model(torch.randn(16, 8, device="cuda"))
    distance = (anchor[:, None] - anchor[None]).square().sum(-1).sqrt()
    loss = distance.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
