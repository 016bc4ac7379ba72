"""The generator's loss reuses scores of the discriminator from before its optimizer step."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
bce, ones, zeros = nn.BCEWithLogitsLoss(), torch.ones(8, 1), torch.zeros(8, 1)
for _ in range(3):
    real, fake = torch.randn(8, 2) + 2, generator(torch.randn(8, 4))
    fake_scores = discriminator(fake)
    loss_d = bce(discriminator(real), ones) + bce(fake_scores, zeros)
    opt_d.zero_grad()
    loss_d.backward(retain_graph=True)
    opt_d.step()

    loss_g = bce(fake_scores, ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
