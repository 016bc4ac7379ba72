import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
score = nn.BCEWithLogitsLoss()
real, ones, zeros = torch.randn(8, 2), torch.ones(8, 1), torch.zeros(8, 1)
fake = generator(torch.randn(8, 4))
optimizer_d.zero_grad()
loss_d = score(discriminator(real), ones) + score(discriminator(fake.detach()), zeros)
loss_d.backward()
optimizer_d.step()
optimizer_g.zero_grad()
loss_g = score(discriminator(fake), ones)
loss_g.backward()
optimizer_g.step()
