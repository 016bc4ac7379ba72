"""A linear probe that watches a representation, with a loss of its own behind the network's."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 6))
decoder, probe = nn.Linear(6, 8), nn.Linear(6, 3)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
probe_optimizer = torch.optim.Adam(probe.parameters(), lr=1e-2)

for _ in range(3):
    x, labels = torch.randn(12, 8), torch.randint(3, (12,))
    code = encoder(x)
    loss = F.mse_loss(decoder(code), x)
    seen = F.cross_entropy(probe(code.detach()), labels)
    optimizer.zero_grad()
    probe_optimizer.zero_grad()
    loss.backward()
    seen.backward()
    optimizer.step()
    probe_optimizer.step()
