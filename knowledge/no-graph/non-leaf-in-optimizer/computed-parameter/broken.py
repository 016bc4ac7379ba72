import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(6, 2)
        self.decoder = nn.Linear(2, 6)
        self.decoder.weight = self.encoder.weight.t()

    def forward(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))


torch.manual_seed(0)
model = Tied()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 6)
loss = nn.functional.mse_loss(model(x), x)
loss.backward()
optimizer.step()
