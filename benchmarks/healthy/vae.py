"""A variational autoencoder with the reparameterised sample."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(8, 6), nn.Linear(3, 8)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
for step in range(8):
    x = torch.rand(16, 8)
    mean, logvar = encoder(x).chunk(2, dim=1)
    z = mean + (0.5 * logvar).exp() * torch.randn_like(mean)
    loss = (
        nn.functional.binary_cross_entropy_with_logits(decoder(z), x)
        - 0.005 * (1 + logvar - mean.square() - logvar.exp()).sum(1).mean()
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
