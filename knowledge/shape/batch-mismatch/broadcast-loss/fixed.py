"""A silent one: predictions [n, 1] and targets [n] broadcast to n x n differences; the assertion shows the wrong gradient."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(8, 1)
inputs, targets = torch.randn(6, 8), torch.randn(6)
loss = nn.functional.mse_loss(model(inputs).squeeze(-1), targets)
loss.backward()

residuals = (inputs @ model.weight.detach().T).squeeze(1) + model.bias.detach() - targets
by_hand = 2 * (residuals[:, None] * inputs).mean(0, keepdim=True)
torch.testing.assert_close(model.weight.grad, by_hand)
