"""The best model so far is kept by a copy of the whole module; pruning keeps a masked weight on the layer, which has a graph."""

import copy

import torch
from torch import nn
from torch.nn.utils import prune

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
prune.l1_unstructured(net[0], "weight", 0.5)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
best, lowest = None, float("inf")
for _ in range(3):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if loss.item() < lowest:
        best, lowest = copy.deepcopy(net), loss.item()
net.load_state_dict(best.state_dict())
