# device/mixed-devices
# mended: mine.mul_(self.decay).add_(theirs.to(mine.device), alpha=1 - self.decay)
import copy

import torch
from torch import nn


class Average:
    def __init__(self, model, decay=0.99):
        self.model = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.parameters(), model.parameters()):
            mine.mul_(self.decay).add_(theirs, alpha=1 - self.decay)


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5))
average = Average(net)
net.to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(10):
    images, labels = torch.randn(16, 3, 8, 8).to(device), torch.randint(5, (16,)).to(device)
    loss = nn.functional.cross_entropy(net(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update(net)
    print(step, loss.item())
