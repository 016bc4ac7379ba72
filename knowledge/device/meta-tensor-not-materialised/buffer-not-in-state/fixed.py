"""A table that is no part of the state dict stays on the meta device, where its module was built."""

import torch
from torch import nn


class Scaled(nn.Module):
    """A linear layer whose features weigh more and more."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.register_buffer("weights", torch.linspace(0.1, 1.0, 4), persistent=False)

    def forward(self, x):
        return self.linear(x) * self.weights


torch.manual_seed(0)

inputs, saved = torch.randn(4, 8), Scaled().state_dict()
with torch.device("cpu"):
    model = Scaled()
model.load_state_dict(saved, assign=True)
model(inputs).pow(2).mean().backward()
