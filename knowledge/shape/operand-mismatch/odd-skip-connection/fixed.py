"""An upsampled map of an odd size meets the skip connection that it is concatenated with."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, padding=1)
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        skip = torch.relu(self.down(x))
        x = self.up(F.max_pool2d(skip, 2))
        x = F.interpolate(x, size=skip.shape[-2:])
        return self.head(torch.cat([skip, x], dim=1))


model = TinyUNet()
model(torch.randn(2, 3, 15, 15)).mean().backward()
