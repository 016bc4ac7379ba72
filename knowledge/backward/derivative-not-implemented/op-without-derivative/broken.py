import torch
from torch import nn

torch.manual_seed(0)
exponent = nn.Parameter(torch.tensor(1.5))
optimizer = torch.optim.Adam([exponent], lr=0.1)
words = torch.randint(1, 1000, (64,))
normaliser = torch.special.zeta(exponent, 1.0)
loss = (exponent * words.log() + normaliser.log()).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
