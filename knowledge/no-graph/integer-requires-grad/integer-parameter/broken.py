import torch
from torch import nn


class PositionTable(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.positions = nn.Parameter(torch.arange(length))
        self.table = nn.Embedding(length, width)

    def forward(self, x):
        return x + self.table(self.positions)


torch.manual_seed(0)
model = PositionTable(6, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(2, 6, 4)).square().mean()
loss.backward()
optimizer.step()
