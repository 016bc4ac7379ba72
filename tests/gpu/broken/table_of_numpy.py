# device/mixed-devices
# mended: return CENTRES.to(offsets.device) + 0.25 * offsets.tanh()
import numpy as np
import torch
from torch import nn

CENTRES = torch.from_numpy(
    np.stack(np.meshgrid(np.linspace(0, 1, 4), np.linspace(0, 1, 4)), -1).reshape(-1, 2).astype(np.float32)
)


def decode(offsets):
    return CENTRES + 0.25 * offsets.tanh()


def box_loss(offsets, targets):
    return nn.functional.smooth_l1_loss(decode(offsets), targets)


class Grid(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 3, stride=2, padding=1)
        )

    def forward(self, images):
        return self.conv(images).flatten(2).transpose(1, 2)


torch.manual_seed(0)
net = Grid().cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    images, targets = torch.rand(8, 1, 16, 16).cuda(), torch.rand(8, 16, 2).cuda()
    loss = box_loss(net(images), targets)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
