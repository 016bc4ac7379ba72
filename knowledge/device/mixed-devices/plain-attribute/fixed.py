"""A mask in a plain attribute stays on the CPU when the module moves; needs a GPU."""

import torch
from torch import nn

torch.manual_seed(0)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)))

    def forward(self, x):
        return x @ (self.linear.weight * self.mask)


model = Masked().to("cuda")
model(torch.randn(4, 8, device="cuda")).pow(2).mean().backward()
