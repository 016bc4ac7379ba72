"""Input and output embeddings are one parameter."""

import torch
from torch import nn

torch.manual_seed(0)
embedding, body, head = nn.Embedding(32, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 32, bias=False)
head.weight = embedding.weight
parameters = {id(one): one for part in (embedding, body, head) for one in part.parameters()}
optimizer = torch.optim.Adam(parameters.values(), lr=1e-2)
for step in range(8):
    ids = torch.randint(0, 32, (4, 10))
    optimizer.zero_grad()
    nn.functional.cross_entropy(head(body(embedding(ids))[0][:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
    optimizer.step()
