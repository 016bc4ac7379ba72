"""Graphs of a batch are joined, and the offset has grown by a graph's own nodes before it is added to that graph's edges."""

import torch
from torch import nn

torch.manual_seed(0)
graphs = [(torch.randn(n, 3), torch.tensor([[0, 1, 2], [1, 2, n - 1]])) for n in (4, 3, 5)]
nodes, edges, offset = [], [], 0
for features, pairs in graphs:
    nodes.append(features)
    edges.append(pairs + offset)
    offset += len(features)
x, (source, target) = torch.cat(nodes), torch.cat(edges, 1)
layer, head = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
messages = layer(x)[source]
loss = head(torch.zeros(len(x), 4).index_add(0, target, messages)).pow(2).mean()
loss.backward()
optimizer.step()
