"""A window on the hidden state is cut under no_grad and written with grad mode on."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(6, 8), nn.Linear(8, 2)
bias = nn.Parameter(torch.zeros(4))
hidden = encoder(torch.randn(5, 6))
with torch.no_grad():
    window = hidden[:, :4]
window += bias
loss = nn.functional.cross_entropy(head(torch.tanh(hidden)), torch.tensor([0, 1, 1, 0, 1]))
loss.backward()
