"""LoRA written by hand over a frozen layer; all parameters are given to the optimizer."""

import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, layer, rank=2):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(layer.in_features, rank) * 0.1)
        self.b = nn.Parameter(torch.zeros(rank, layer.out_features))

    def forward(self, x):
        return self.layer(x) + x @ self.a @ self.b


torch.manual_seed(0)
model = nn.Sequential(Lora(nn.Linear(4, 8)), nn.Tanh(), Lora(nn.Linear(8, 2)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(8):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(16, 4)), torch.randint(0, 2, (16,))).backward()
    optimizer.step()
