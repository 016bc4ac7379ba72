"""Groups by the beginnings of names: what begins with `head` is the normalisation before the head as well."""

import torch
from torch import nn

RATES = {"body": 1e-3, "head": 1e-2, "head_norm": 5e-3}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head_norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.head_norm(self.body(x)))


torch.manual_seed(0)
net = Net()
groups = []
for part, lr in RATES.items():
    groups.append({"params": [p for name, p in net.named_parameters() if name.startswith(f"{part}.")], "lr": lr})
optimizer = torch.optim.AdamW(groups)
for _ in range(3):
    loss = net(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
