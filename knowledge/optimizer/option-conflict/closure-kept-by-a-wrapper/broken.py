import torch
from torch import nn


class Lookahead:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, closure=None):
        return self.optimizer.step()


torch.manual_seed(0)
model = nn.Linear(4, 2)
inner = torch.optim.LBFGS(model.parameters(), lr=0.1)
optimizer = Lookahead(inner)
for x in torch.rand(24, 4).split(8):

    def closure():
        inner.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
