import torch
from torch import nn


def set_requires_grad(module, flag):
    for parameter in module.parameters():
        parameter.requires_grad = flag


torch.manual_seed(0)
painter, critic = nn.Linear(4, 6), nn.Linear(6, 1)
painting = torch.optim.Adam(painter.parameters(), lr=0.01)
judging = torch.optim.Adam(critic.parameters(), lr=0.01)

for _ in range(3):
    sketch, real = torch.randn(8, 4), torch.randn(8, 6)
    fake = painter(sketch)

    set_requires_grad(critic, True)
    verdict = critic(fake.detach()).mean() - critic(real).mean()
    judging.zero_grad()
    verdict.backward()
    judging.step()

    set_requires_grad(critic, False)
    loss = -critic(fake).mean()
    painting.zero_grad()
    loss.backward()
    painting.step()
