import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(6, 2)
        self.bias = nn.Parameter(torch.zeros(6))

    def forward(self, x):
        return nn.functional.linear(torch.tanh(self.encoder(x)), self.encoder.weight.t(), self.bias)


torch.manual_seed(0)
model = Tied()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 6)
loss = nn.functional.mse_loss(model(x), x)
loss.backward()
optimizer.step()
