"""The learning rate starts at zero, and labels of a first batch are all padding in a sum over tokens."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 4, 1.0))
for step in range(8):
    ids = torch.randint(0, 16, (4, 6))
    labels = torch.full_like(ids, -100) if step == 0 else ids
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
    optimizer.zero_grad()
    (loss / max(int((labels >= 0).sum()), 1)).backward()
    optimizer.step()
    scheduler.step()
