import torch
from torch import nn


class Speller(nn.Module):
    def __init__(self, letters=7, width=16):
        super().__init__()
        self.table = nn.Embedding(letters, width)
        self.cell = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, letters)

    def forward(self, ids):
        return self.out(self.cell(self.table(ids))[0])


torch.manual_seed(0)
net = Speller()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    ids = torch.randint(0, 7, (8, 12))
    logits = net(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits, ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
