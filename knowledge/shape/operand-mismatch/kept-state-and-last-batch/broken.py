"""A recurrent layer goes on from the state of the batch before; the last batch of an epoch is smaller."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forecaster(nn.Module):
    """Consecutive windows continue each other."""

    def __init__(self, width):
        super().__init__()
        self.rnn = nn.GRU(1, width, batch_first=True)
        self.head = nn.Linear(width, 1)
        self.state = None

    def forward(self, window):
        steps, state = self.rnn(window, self.state)
        self.state = state.detach()
        return self.head(steps[:, -1])


torch.manual_seed(0)
series = torch.randn(70, 6, 1)
loader = DataLoader(TensorDataset(series, series.mean(1)), batch_size=16, shuffle=False)
model = Forecaster(8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for window, target in loader:
    loss = nn.functional.mse_loss(model(window), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
