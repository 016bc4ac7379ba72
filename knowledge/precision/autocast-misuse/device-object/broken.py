"""autocast is given a torch.device where it takes the name of a device type."""
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cpu")
model = nn.Linear(4, 1).to(device)

with torch.autocast(device, dtype=torch.bfloat16):
    loss = model(torch.randn(8, 4, device=device)).pow(2).mean()
loss.backward()
