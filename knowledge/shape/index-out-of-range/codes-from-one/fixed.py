"""The codes of a vocabulary begin at 1, because 0 is kept for what is not in it, and the table does not count that row."""

import torch
from torch import nn

torch.manual_seed(0)
plans = ["basic", "plus", "pro", "plus", "basic", "pro"]
codes = {plan: code for code, plan in enumerate(sorted(set(plans)), start=1)}
table, head = nn.Embedding(len(codes) + 1, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*table.parameters(), *head.parameters()], lr=1e-2)
rows = torch.tensor([codes.get(plan, 0) for plan in plans])
loss = head(table(rows)).pow(2).mean()
loss.backward()
optimizer.step()
