import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(3, 4), nn.LSTMCell(4, 4)])
        self.states = [(torch.zeros(2, 4), torch.zeros(2, 4)) for _ in self.cells]

    def forward(self, chunk):
        self.states = [tuple(part.detach() for part in parts) for parts in self.states]
        for step in chunk:
            fresh = []
            for cell, state in zip(self.cells, self.states):
                fresh.append(cell(step, state))
                step = fresh[-1][0]
            self.states = fresh
        return step


torch.manual_seed(0)
stack = Stack()
optimizer = torch.optim.SGD(stack.parameters(), lr=0.1)
for chunk in torch.randn(3, 5, 2, 3):
    loss = stack(chunk).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
