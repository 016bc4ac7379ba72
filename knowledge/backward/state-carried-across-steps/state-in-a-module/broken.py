import torch
from torch import nn


class LeakyNeuron(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.tensor(2.0))
        self.reset()

    def reset(self):
        self.membrane = torch.zeros(())

    def forward(self, current):
        self.membrane = self.decay.sigmoid() * self.membrane + current
        return torch.sigmoid(5 * (self.membrane - 1))


torch.manual_seed(0)
encoder, neuron = nn.Linear(4, 3), LeakyNeuron()
optimizer = torch.optim.SGD([*encoder.parameters(), *neuron.parameters()], lr=0.1)
for frames, target in zip(torch.rand(3, 5, 8, 4), torch.rand(3, 8, 3)):
    rate = torch.stack([neuron(encoder(frame)) for frame in frames]).mean(0)
    loss = nn.functional.mse_loss(rate, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
