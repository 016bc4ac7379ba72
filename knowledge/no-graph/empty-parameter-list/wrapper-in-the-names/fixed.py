import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x).relu())


class Scaled(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x / 255)


TRAINED = ("net.head",)
torch.manual_seed(0)
model = Scaled(Network())
trainable = [p for name, p in model.named_parameters() if name.startswith(TRAINED)]
optimizer = torch.optim.SGD(trainable, lr=0.1)
nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.tensor([0, 1, 2, 0])).backward()
optimizer.step()
