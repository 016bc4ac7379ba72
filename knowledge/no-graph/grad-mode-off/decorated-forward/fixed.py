import torch
from torch import nn


class VisionTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(48, 8), nn.Tanh())

    def forward(self, image):
        return self.net(image)


torch.manual_seed(0)
tower = VisionTower().requires_grad_(False)
head = nn.Linear(8, 3).requires_grad_(False)
image = torch.rand(1, 3, 4, 4, requires_grad=True)
optimizer = torch.optim.SGD([image], lr=0.1)
target = torch.tensor([2])
loss = nn.functional.cross_entropy(head(tower(image)), target)
loss.backward()
optimizer.step()
