"""A GAN whose discriminator is shown images of earlier steps from a pool, which keeps them detached, and a momentum copy of the generator."""

import copy

import torch
from torch import nn


class Pool:
    def __init__(self, size):
        self.size, self.images = size, []

    def query(self, batch):
        shown = []
        for image in batch.detach():
            if len(self.images) < self.size:
                self.images.append(image)
                shown.append(image)
            else:
                at = int(torch.randint(self.size, ()))
                shown.append(self.images[at])
                self.images[at] = image
        return torch.stack(shown)


torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
slow = copy.deepcopy(generator).requires_grad_(False)
critic = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
pool = Pool(6)
for _ in range(20):
    fake = generator(torch.randn(4, 4))
    loss_d = (
        critic(torch.randn(4, 8)).mean()
        - critic(pool.query(fake)).mean()
        + critic(slow(torch.randn(4, 4))).pow(2).mean()
    )
    of_critic.zero_grad()
    loss_d.backward()
    of_critic.step()
    loss_g = critic(fake).mean()
    of_generator.zero_grad()
    loss_g.backward()
    of_generator.step()
    with torch.no_grad():
        for one, other in zip(slow.parameters(), generator.parameters()):
            one.lerp_(other, 0.1)
print(f"loss {loss_g.item():.4f}")
