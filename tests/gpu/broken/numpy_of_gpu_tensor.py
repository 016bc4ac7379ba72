# device/mixed-devices
# mended: history.append(loss.detach().cpu().numpy())
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history = []
for step in range(8):
    loss = model(torch.randn(16, 8, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.detach().numpy())
print(np.mean(history))
