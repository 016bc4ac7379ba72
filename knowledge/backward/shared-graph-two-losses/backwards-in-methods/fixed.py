"""pix2pix's methods: the critic's loss goes back into the generator, whose own loss goes through the same graph afterwards."""

import torch
from torch import nn


class Translator:
    def __init__(self):
        self.generator, self.critic = nn.Linear(4, 4), nn.Linear(4, 1)
        self.optimizer_g = torch.optim.SGD(self.generator.parameters(), lr=0.1)
        self.optimizer_d = torch.optim.SGD(self.critic.parameters(), lr=0.1)

    def backward_d(self, real):
        loss = self.critic(self.fake.detach()).mean() - self.critic(real).mean()
        loss.backward()

    def backward_g(self, real):
        loss = (self.fake - real).abs().mean() - self.critic(self.fake).mean()
        loss.backward()

    def step(self, source, real):
        self.fake = self.generator(source)
        self.optimizer_d.zero_grad()
        self.backward_d(real)
        self.optimizer_d.step()
        self.optimizer_g.zero_grad()
        self.backward_g(real)
        self.optimizer_g.step()


torch.manual_seed(0)
translator = Translator()
translator.step(torch.randn(2, 4), torch.randn(2, 4))
