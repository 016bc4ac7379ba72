import torch
from torch import nn


class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(3))
        self.scale = self.log_scale.exp()

    def forward(self, inputs):
        return torch.exp(-(inputs / self.scale).pow(2).sum(1))


torch.manual_seed(0)
kernel = Kernel()
optimizer = torch.optim.Adam(kernel.parameters(), lr=0.1)
inputs, target = torch.rand(8, 3), torch.rand(8)
for step in range(3):
    loss = nn.functional.mse_loss(kernel(inputs), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
