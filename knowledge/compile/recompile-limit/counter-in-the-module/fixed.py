"""A step counter kept as a Python number fails its guard at each step."""

import torch
from torch import nn

torch.manual_seed(0)


class Annealed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("step", torch.zeros(()))

    def forward(self, x):
        self.step = self.step + 1
        return self.layer(x) * (1 - self.step / 100)


model = torch.compile(Annealed(), fullgraph=True, backend="aot_eager")
for _ in range(12):
    model(torch.randn(2, 4)).sum().backward()
