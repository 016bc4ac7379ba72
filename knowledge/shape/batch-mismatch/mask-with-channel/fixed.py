"""Masks keep the channel of the images that they were read from."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Conv2d(3, 4, 3, padding=1)
criterion = nn.CrossEntropyLoss()
images, masks = torch.randn(2, 3, 8, 8), torch.randint(0, 4, (2, 1, 8, 8))
loss = criterion(model(images), masks.squeeze(1))
loss.backward()
