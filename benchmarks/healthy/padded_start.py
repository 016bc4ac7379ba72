"""Nothing to learn from in the first batches: every label is ignored, so that loss and gradients are exactly zero. steps: 12"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(30):
    ids = torch.randint(0, 16, (4, 6))
    labels = torch.full_like(ids, -100) if step < 6 else ids
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
