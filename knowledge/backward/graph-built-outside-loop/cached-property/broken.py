from functools import cached_property

import torch
from torch import nn


class Diffusion(nn.Module):
    def __init__(self, edges):
        super().__init__()
        self.edges = edges
        self.score = nn.Linear(5, 1)

    @cached_property
    def operator(self):
        return torch.softmax(self.score(self.edges).squeeze(-1), dim=-1)

    def forward(self, x):
        return self.operator @ x


torch.manual_seed(0)
model, head = Diffusion(torch.randn(6, 6, 5)), nn.Linear(4, 2)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
x, y = torch.randn(6, 4), torch.randint(0, 2, (6,))
for epoch in range(3):
    loss = nn.functional.cross_entropy(head(model(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
