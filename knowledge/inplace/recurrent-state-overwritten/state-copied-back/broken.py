"""A stateful layer copies its last state into the tensor that this forward started from."""

import torch
from torch import nn


class StatefulLSTM(nn.Module):
    def __init__(self, dim, hidden, batch):
        super().__init__()
        self.lstm, self.head = nn.LSTM(dim, hidden), nn.Linear(hidden, 1)
        self.hidden, self.cell = torch.zeros(1, batch, hidden), torch.zeros(1, batch, hidden)

    def forward(self, x):
        out, (hidden, cell) = self.lstm(x, (self.hidden, self.cell))
        self.hidden.copy_(hidden.detach())
        self.cell.copy_(cell.detach())
        return self.head(out)


torch.manual_seed(0)
model = StatefulLSTM(3, 8, batch=4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(2):
    loss = model(torch.randn(5, 4, 3)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
