"""A student learns from a teacher under no_grad."""

import torch
from torch import nn

torch.manual_seed(0)
teacher, student = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3)).eval(), nn.Linear(4, 3)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
for step in range(8):
    x = torch.randn(16, 4)
    with torch.no_grad():
        aim = (teacher(x) / 2).softmax(1)
    loss = nn.functional.kl_div((student(x) / 2).log_softmax(1), aim, reduction="batchmean") * 4
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
