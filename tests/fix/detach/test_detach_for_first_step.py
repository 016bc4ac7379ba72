"""What one network made is detached in the loss of another one's step function."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

GAN = """import torch
from torch import nn


class Gan:
    def __init__(self):
        self.G, self.D = nn.Linear(4, 4), nn.Linear(4, 1)
        self.opt_g = torch.optim.Adam(self.G.parameters())
        self.opt_d = torch.optim.Adam(self.D.parameters())

    def train_critic(self, real, fake):
        self.opt_d.zero_grad()
        score = self.D(fake)
        loss = score.mean() - self.D(real).mean()
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def train_generator(self, fake):
        self.opt_g.zero_grad()
        loss = -self.D(fake).mean()
        loss.backward()
        self.opt_g.step()

    def step(self, real):
        fake = self.G(torch.randn(2, 4))
        self.train_critic(real, fake)
        self.train_generator(fake)


gan = Gan()
for _ in range(3):
    gan.step(torch.randn(2, 4))
"""
RIGHT = {
    "detached": GAN.replace("self.D(fake)\n        loss = score", "self.D(fake.detach())\n        loss = score"),
    "detached where it is called": GAN.replace(
        "critic(real, fake)\n        self", "critic(real, fake.detach())\n        self"
    ),
    "one optimizer owns both": GAN.replace(
        "Adam(self.D.parameters())", "Adam([*self.D.parameters(), *self.G.parameters()])"
    ),
    "made anew": GAN.replace("self.train_generator(fake)", "self.train_generator(self.G(torch.randn(2, 4)))"),
    "data": GAN.replace(
        "self.G(torch.randn(2, 4))\n        self.train_critic", "torch.randn(2, 4)\n        self.train_critic"
    ),
}
WRONG = {
    "methods": (GAN, ["score = self.D(fake.detach())"]),
    "in one expression": (
        GAN.replace("score.mean() - self", "self.D(fake).mean() - self").replace("        score = self.D(fake)\n", ""),
        ["loss = self.D(fake.detach()).mean() - self.D(real).mean()"],
    ),
}


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path: pathlib.Path, source: str) -> None:
    """A loss that trains what it reaches, or a value of its own, is left alone."""
    assert rewritten(tmp_path, "detach_for_first_step", source, "self.opt_g.step()") == source


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_the_first_loss_takes_it_detached(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    """A second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_for_first_step", source, "self.opt_g.step()")
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "detach_for_first_step", after, "self.opt_g.step()") == after
