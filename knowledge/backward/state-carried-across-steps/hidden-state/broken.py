import torch
from torch import nn

torch.manual_seed(0)
cell, readout = nn.GRU(6, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *readout.parameters()], lr=0.01)
signal = torch.rand(60, 4, 6)
hidden = torch.zeros(1, 4, 8)
for chunk in signal.split(20):
    output, hidden = cell(chunk, hidden)
    loss = readout(output).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
