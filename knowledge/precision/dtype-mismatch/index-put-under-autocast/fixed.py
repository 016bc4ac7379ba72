"""Under autocast the layer returns bfloat16, which is written by index into a float32 tensor."""
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(6, 4)
tokens, kept = torch.randn(5, 6), torch.tensor([0, 2, 3])

with torch.autocast("cpu", dtype=torch.bfloat16):
    output = torch.zeros(5, 4)
    output[kept] = encoder(tokens[kept]).to(output.dtype)
loss = output.float().pow(2).mean()
loss.backward()
