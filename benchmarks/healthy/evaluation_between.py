"""Evaluation under inference_mode in between, with eval() and train()."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(4):
    model.train()
    for step in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(16, 4)), torch.randint(0, 2, (16,))).backward()
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        print("accuracy", float((model(torch.randn(16, 4)).argmax(1) == 0).float().mean()))
