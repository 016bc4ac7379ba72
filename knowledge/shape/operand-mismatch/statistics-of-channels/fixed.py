"""Images are normalised by one mean and one deviation for each channel, which broadcasting lays on the columns."""

import torch
from torch import nn

torch.manual_seed(0)

images, labels = torch.rand(8, 3, 6, 6), torch.randint(0, 2, (8,))
mean, std = images.mean(dim=(0, 2, 3)), images.std(dim=(0, 2, 3))
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    batch = (images - mean[:, None, None]) / std[:, None, None]
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(batch), labels).backward()
    optimizer.step()
