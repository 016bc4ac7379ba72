import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)
        self.layer = nn.Linear(8, 3)

    def forward(self, x):
        hidden = self.project(x)
        return self.layer(torch.tanh(hidden))


torch.manual_seed(0)
model = Encoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, target = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])
loss = nn.functional.cross_entropy(model(x), target)
loss.backward()
optimizer.step()
