"""The loss of a temperature goes back through the actor's log-probabilities, whose graph the actor's own backward has freed."""

import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Linear(3, 1)
log_alpha = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
of_alpha = torch.optim.Adam([log_alpha], lr=1e-3)

for _ in range(2):
    log_prob = nn.functional.logsigmoid(actor(torch.randn(8, 3)))
    loss = (log_alpha.exp().detach() * log_prob).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    alpha_loss = -(log_alpha.exp() * (log_prob + 1.0)).mean()
    of_alpha.zero_grad()
    alpha_loss.backward()
    of_alpha.step()
