"""A linear layer built for 8 x 8 feature maps that gets 7 x 7."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(
    nn.Conv2d(3, 4, kernel_size=3),
    nn.ReLU(),
    nn.AvgPool2d(2),
    nn.Flatten(),
    nn.Linear(196, 10),
)
images = torch.randn(2, 3, 16, 16)
labels = torch.randint(10, (2,))
loss = nn.functional.cross_entropy(model(images), labels)
loss.backward()
