import torch
from torch import nn


class Run:
    def __init__(self):
        self.logits, self.net = nn.Parameter(torch.zeros(5, 5)), nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD([self.logits, *self.net.parameters()], lr=0.1)
        self.propagation = torch.softmax(self.logits, dim=1)

    def step(self, features, target):
        loss = nn.functional.mse_loss(self.net(self.propagation @ features), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
run = Run()
for features, target in zip(torch.randn(3, 5, 4), torch.randn(3, 5, 2)):
    run.step(features, target)
