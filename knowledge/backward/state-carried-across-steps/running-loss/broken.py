import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
smoothed = torch.zeros(())
for inputs, target in zip(torch.rand(4, 8, 5), torch.rand(4, 8, 1)):
    loss = nn.functional.mse_loss(model(inputs), target)
    smoothed = 0.9 * smoothed + 0.1 * loss
    optimizer.zero_grad()
    (loss / (1 + smoothed)).backward()
    optimizer.step()
