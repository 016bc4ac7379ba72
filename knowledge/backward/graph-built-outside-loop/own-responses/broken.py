import torch
from torch import nn
from torch.nn import functional as F


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 8), nn.Tanh())
        self.heads = nn.ModuleList([nn.Linear(8, 4), nn.Linear(8, 3)])

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


torch.manual_seed(0)
learner = Learner()
x, labels = torch.rand(24, 6), torch.randint(3, (24,))
optimizer = torch.optim.SGD(learner.parameters(), lr=0.1)
before = F.softmax(learner(x, 0), dim=-1)
for rows in torch.randperm(24).split(8):
    loss = F.cross_entropy(learner(x[rows], 1), labels[rows])
    now = F.log_softmax(learner(x[rows], 0), dim=-1)
    loss = loss - (before[rows] * now).sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
