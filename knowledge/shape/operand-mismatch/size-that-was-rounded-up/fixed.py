"""A top-down neck doubles a map of 5 cells, which a stride of 2 has made of 9: 10 meet 9."""

import torch
from torch import nn
from torch.nn import functional as F


class Neck(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine, self.coarse = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, stride=2, padding=1)

    def forward(self, images):
        fine = self.fine(images)
        return fine + F.interpolate(self.coarse(fine), size=fine.shape[2:], mode="nearest")


torch.manual_seed(0)
neck, head = Neck(), nn.Conv2d(4, 1, 1)
optimizer = torch.optim.SGD([*neck.parameters(), *head.parameters()], lr=0.1)
loss = head(neck(torch.randn(2, 3, 9, 9))).pow(2).mean()
loss.backward()
optimizer.step()
