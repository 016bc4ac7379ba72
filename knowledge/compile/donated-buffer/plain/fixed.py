"""The second backward of a compiled model keeps a graph whose buffers the first one gave away."""

import torch
from torch import nn

torch.manual_seed(0)

model = torch.compile(
    nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)), backend="aot_eager"
)
model(torch.randn(4, 8)).mean().backward()

output = model(torch.randn(4, 8))
(output.mean() + output.pow(2).mean()).backward()
