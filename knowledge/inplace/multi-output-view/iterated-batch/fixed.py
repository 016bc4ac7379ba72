"""Iterating over a tensor unbinds it, and images that require grad are copied into those views."""

import torch
from torch import nn

torch.manual_seed(0)
scale, backbone = nn.Parameter(torch.ones(1)), nn.Conv2d(3, 4, 3)
images = [scale * torch.rand(3, 6, 8), scale * torch.rand(3, 8, 5)]
batch = torch.zeros(2, 3, 8, 8)
for index, image in enumerate(images):
    batch[index, :, : image.shape[1], : image.shape[2]].copy_(image)
loss = backbone(batch).pow(2).mean()
loss.backward()
