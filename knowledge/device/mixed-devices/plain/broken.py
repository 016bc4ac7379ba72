"""The model is on the GPU, the batch still on the CPU; needs a GPU."""

import torch
from torch import nn

torch.manual_seed(0)

device = torch.device("cuda")
model = nn.Linear(8, 2).to(device)
inputs, labels = torch.randn(4, 8), torch.randint(2, (4,))
loss = nn.functional.cross_entropy(model(inputs), labels)
loss.backward()
