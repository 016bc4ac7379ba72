"""Labels counted from 1 in a loss on the GPU; needs a GPU."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(8, 3).cuda()
inputs = torch.randn(6, 8, device="cuda")
labels = torch.tensor([1, 2, 3, 1, 2, 3], device="cuda")
loss = nn.functional.cross_entropy(model(inputs), labels - 1)
loss.backward()
torch.cuda.synchronize()
