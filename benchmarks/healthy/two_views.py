"""Two views through one network with batch norm, and an evaluation between the epochs."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
encoder = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
)
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
images = torch.randn(32, 3, 8, 8)
for epoch in range(3):
    encoder.train()
    for batch in images.split(8):
        one, two = (F.normalize(encoder(batch + 0.1 * torch.randn_like(batch)), dim=1) for _ in range(2))
        loss = F.cross_entropy(one @ two.T / 0.1, torch.arange(8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    encoder.eval()
    with torch.no_grad():
        print(epoch, loss.item(), encoder(images).std().item())
