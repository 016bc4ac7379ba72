"""Quantisation-aware training with a straight-through estimator, and a metric that rounds."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Quantised(nn.Linear):
    def forward(self, x):
        scale = self.weight.detach().abs().max() / 7
        hard = torch.round(self.weight / scale) * scale
        return F.linear(x, self.weight + (hard - self.weight).detach(), self.bias)


net = nn.Sequential(Quantised(8, 16), nn.BatchNorm1d(16), nn.ReLU(), Quantised(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(64, 8)
y = x[:, :1].floor()
for step in range(12):
    score = net(x)
    loss = F.mse_loss(score, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        print(loss.item(), (score.round() == y).float().mean().item())
