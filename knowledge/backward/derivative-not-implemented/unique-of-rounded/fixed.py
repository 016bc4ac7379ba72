import torch
from torch import nn


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(2))
        self.points = nn.Linear(2, 4)

    def forward(self, points):
        xy = points + self.offset
        cells = torch.floor(xy * 4)
        found, inverse = torch.unique(cells.detach(), return_inverse=True, dim=0)
        features = self.points(xy - (found[inverse] + 0.5) / 4)
        return torch.zeros(len(found), 4).index_add(0, inverse, features), found * 0.1


torch.manual_seed(0)
model = Cells()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for points in torch.rand(24, 2).split(8):
    sums, places = model(points)
    loss = (sums.sum(1) - places.sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
