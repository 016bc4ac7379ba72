"""A ranking loss weighed by the gaps of all pairs, with one column of scores a query. steps: 6"""

import torch
from torch import nn

torch.manual_seed(0)
scorer = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-3)
for step in range(10):
    documents, relevance = torch.randn(16, 6), torch.rand(16)
    scores = scorer(documents)
    gaps = relevance - relevance[:, None]
    ranks = (scores.detach().squeeze(1) - scores.detach().view(-1, 1)).gt(0).sum(0)
    weight = gaps.abs() / (2 + ranks.float()).log2()
    loss = (weight * nn.functional.softplus(scores - scores.t())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
