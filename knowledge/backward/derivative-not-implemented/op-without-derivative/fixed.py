import torch
from torch import nn

torch.manual_seed(0)
exponent = nn.Parameter(torch.tensor(1.5))
optimizer = torch.optim.Adam([exponent], lr=0.1)
words = torch.randint(1, 1000, (64,))
normaliser = (torch.arange(1.0, 1000.0) ** -exponent).sum()
loss = (exponent * words.log() + normaliser.log()).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
