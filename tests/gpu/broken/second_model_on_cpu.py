# device/mixed-devices
# mended: teacher = copy.deepcopy(student).eval().to("cuda")
import copy

import torch
from torch import nn

torch.manual_seed(0)
student = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
teacher = copy.deepcopy(student).eval()
student.to("cuda")
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randn(16, 8, device="cuda")
    with torch.no_grad():
        wanted = teacher(x).softmax(-1)
    loss = nn.functional.kl_div(student(x * 1.1).log_softmax(-1), wanted, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
