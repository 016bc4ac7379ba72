import torch
from torch import nn
from torch.nn import functional as F


def sample(image, grid):
    return F.grid_sample(image.float(), grid, align_corners=True)


torch.manual_seed(0)
features = nn.Conv2d(1, 2, 3, padding=1)
optimizer = torch.optim.SGD(features.parameters(), lr=0.1)
picture = torch.randn(2, 1, 8, 8)
grid = F.affine_grid(torch.eye(2, 3).expand(2, -1, -1) * 0.9, (2, 2, 8, 8), align_corners=True)

with torch.autocast("cpu", dtype=torch.bfloat16):
    image = features(picture)
loss = sample(image, grid).square().mean()
loss.backward()
optimizer.step()
