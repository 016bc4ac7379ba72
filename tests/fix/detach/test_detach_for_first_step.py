"""What one network made is detached in the loss of another one's step function."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

BY_KEYS = 'Gan({"G": nn.Linear(4, 4), "D": nn.Linear(4, 1)})'
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
PIX2PIX = """import torch
from torch import nn


class Pix2Pix:
    def __init__(self):
        self.netG, self.netD = nn.Linear(4, 4), nn.Linear(4, 1)
        self.optimizer_G = torch.optim.Adam(self.netG.parameters())
        self.optimizer_D = torch.optim.Adam(self.netD.parameters())

    def set_input(self, real):
        self.real = real

    def forward(self):
        self.fake = self.netG(self.real)

    def backward_D(self):
        fake_score = self.netD(self.fake)
        self.loss_D = fake_score.mean() - self.netD(self.real).mean()
        self.loss_D.backward()

    def backward_G(self):
        self.loss_G = (self.fake - self.real).abs().mean() - self.netD(self.fake).mean()
        self.loss_G.backward()

    def optimize_parameters(self):
        self.forward()
        self.optimizer_D.zero_grad()
        self.backward_D()
        self.optimizer_D.step()
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()


model = Pix2Pix()
for _ in range(3):
    model.set_input(torch.randn(2, 4))
    model.optimize_parameters()
"""
CYCLE = """import itertools
import torch
from torch import nn


class Pool:
    def query(self, images):
        return images


class CycleGAN:
    def __init__(self, pool):
        self.netG_A, self.netG_B, self.netD_A, self.netD_B = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        self.optimizer_G = torch.optim.Adam(itertools.chain(self.netG_A.parameters(), self.netG_B.parameters()))
        self.optimizer_D = torch.optim.Adam(itertools.chain(self.netD_A.parameters(), self.netD_B.parameters()))
        self.pool = pool

    def forward(self):
        self.fake_B = self.netG_A(self.real_A)
        self.rec_A = self.netG_B(self.fake_B)
        self.fake_A = self.netG_B(self.real_B)

    def backward_D_basic(self, netD, real, fake):
        pred_real, pred_fake = netD(real), netD(fake)
        loss_D = pred_fake.mean() - pred_real.mean()
        loss_D.backward()
        return loss_D

    def backward_D_A(self):
        self.loss_D_A = self.backward_D_basic(self.netD_A, self.real_B, self.fake_B)

    def backward_D_B(self):
        self.loss_D_B = self.backward_D_basic(self.netD_B, self.real_A, self.fake_A)

    def backward_G(self):
        loss = -self.netD_A(self.fake_B).mean() - self.netD_B(self.fake_A).mean()
        loss = loss + (self.rec_A - self.real_A).abs().mean()
        loss.backward()

    def optimize_parameters(self):
        self.forward()
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()
        self.optimizer_D.zero_grad()
        self.backward_D_A()
        self.backward_D_B()
        self.optimizer_D.step()


model = CycleGAN(Pool())
for _ in range(3):
    model.real_A, model.real_B = torch.randn(2, 4), torch.randn(2, 4)
    model.optimize_parameters()
"""
_BOTH = "        self.optimizer_D.step()\n        self.optimizer_G.zero_grad()\n        self.backward_G()\n"
RIGHT = {
    "detached": GAN.replace("self.D(fake)\n        loss = score", "self.D(fake.detach())\n        loss = score"),
    "detached where it is called": GAN.replace(
        "critic(real, fake)\n        self", "critic(real, fake.detach())\n        self"
    ),
    "one optimizer owns both": GAN.replace(
        "Adam(self.D.parameters())", "Adam([*self.D.parameters(), *self.G.parameters()])"
    ),
    "an attribute, detached": PIX2PIX.replace(
        "fake_score = self.netD(self.fake)", "fake_score = self.netD(self.fake.detach())"
    ),
    "two losses of one encoder, before any step": PIX2PIX.replace(
        _BOTH, "        self.optimizer_G.zero_grad()\n        self.backward_G()\n        self.optimizer_D.step()\n"
    ),
    "an attribute that the second method makes anew": PIX2PIX.replace(
        "        self.loss_G = ", "        self.fake = self.netG(self.real)\n        self.loss_G = "
    ),
    "an attribute of data": PIX2PIX.replace("self.netG(self.real)", "self.real * 2"),
    "one optimizer for all attributes": PIX2PIX.replace(
        "Adam(self.netD.parameters())", "Adam([*self.netD.parameters(), *self.netG.parameters()])"
    ),
    "made anew": GAN.replace("self.train_generator(fake)", "self.train_generator(self.G(torch.randn(2, 4)))"),
    "data": GAN.replace(
        "self.G(torch.randn(2, 4))\n        self.train_critic", "torch.randn(2, 4)\n        self.train_critic"
    ),
}
WRONG = {
    "an attribute, in methods without steps": (PIX2PIX, ["fake_score = self.netD(self.fake.detach())"]),
    "methods that the loop calls": (
        PIX2PIX[: PIX2PIX.index("    def optimize")]
        + """
model = Pix2Pix()
for _ in range(3):
    model.set_input(torch.randn(2, 4))
    model.forward()
    model.optimizer_D.zero_grad()
    model.backward_D()
    model.optimizer_D.step()
    model.optimizer_G.zero_grad()
    model.backward_G()
    model.optimizer_G.step()
""",
        ["fake_score = self.netD(self.fake.detach())"],
    ),
    "the other network first, through a function for both critics": (
        CYCLE,
        ["pred_real, pred_fake = netD(real), netD(fake.detach())"],
    ),
    "handed through a pool": (
        CYCLE.replace("self.real_B, self.fake_B)", "self.real_B, self.pool.query(self.fake_B))").replace(
            "self.real_A, self.fake_A)", "self.real_A, self.pool.query(self.fake_A))"
        ),
        [
            "self.loss_D_A = self.backward_D_basic(self.netD_A, self.real_B, self.pool.query(self.fake_B.detach()))",
            "self.loss_D_B = self.backward_D_basic(self.netD_B, self.real_A, self.pool.query(self.fake_A.detach()))",
        ],
    ),
    "a function that the other loss uses too": (
        PIX2PIX.replace(
            "    def backward_D(self):\n        fake_score = self.netD(self.fake)\n        self.loss_D = fake_score.mean()",
            "    def scored(self, x):\n        return self.netD(x).mean()\n\n    def backward_D(self):\n        self.loss_D = self.scored(self.fake)",
        ).replace("- self.netD(self.fake).mean()", "- self.scored(self.fake)"),
        ["self.loss_D = self.scored(self.fake.detach()) - self.netD(self.real).mean()"],
    ),
    "methods": (GAN, ["score = self.D(fake.detach())"]),
    "networks and optimizers by keys": (
        GAN.replace("self.D(", 'self.nets["D"](')
        .replace("self.G(", 'self.nets["G"](')
        .replace("self.opt_d.", 'self.opts["D"].')
        .replace("self.opt_g.", 'self.opts["G"].')
        .replace("def __init__(self):", "def __init__(self, nets):")
        .replace("Gan()", BY_KEYS)
        .replace(
            "        self.G, self.D = nn.Linear(4, 4), nn.Linear(4, 1)\n", "        self.nets, self.opts = nets, {}\n"
        )
        .replace(
            "        self.opt_g = torch.optim.Adam(self.G.parameters())\n", "        for key, net in nets.items():\n"
        )
        .replace("        self.opt_d = torch.optim.Adam(self.D", "            self.opts[key] = torch.optim.Adam(net"),
        ['score = self.nets["D"](fake.detach())'],
    ),
    "in one expression": (
        GAN.replace("score.mean() - self", "self.D(fake).mean() - self").replace("        score = self.D(fake)\n", ""),
        ["loss = self.D(fake.detach()).mean() - self.D(real).mean()"],
    ),
}


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path: pathlib.Path, source: str) -> None:
    """A loss that trains what it reaches, or a value of its own, is left alone."""
    assert rewritten(tmp_path, "detach_for_first_step", source) == source


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_the_first_loss_takes_it_detached(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    """A second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_for_first_step", source)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "detach_for_first_step", after) == after


@pytest.mark.torch
@pytest.mark.parametrize("source", [source for source, _ in WRONG.values()], ids=WRONG)
def test_the_program_trains_then(tmp_path: pathlib.Path, source: str) -> None:
    """It fails as it is, and runs to its end with the edit."""
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="backward through the graph a second time|modified by an inplace operation"):
        exec(source, {})
    exec(rewritten(tmp_path, "detach_for_first_step", source), {})
