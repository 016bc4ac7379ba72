"""What is computed once from weights, in a constructor or an outer scope, is computed in the functions that read it."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = """import torch
from torch import nn
import torch.nn.functional as F


class Mixer(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n, n))

    def forward(self):
        return self.logits.exp() / self.logits.exp().sum(1, keepdim=True)


torch.manual_seed(0)
xs, ys = torch.randn(3, 5, 4), torch.randn(3, 5, 2)
"""
RUN = """

run = Run()
for x, y in zip(xs, ys):
    run.step(x, y)
"""
STEP = """
    def step(self, x, y):
        loss = F.mse_loss(self.net(self.mix @ x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
"""


def _run(made: str, step: str = STEP, rest: str = RUN) -> str:
    return f"{HEAD}\n\nclass Run:\n    def __init__(self):\n        self.mixer, self.net = Mixer(5), nn.Linear(4, 2)\n{made}{step}{rest}"


OPT = "        self.opt = torch.optim.SGD([*self.mixer.parameters(), *self.net.parameters()], lr=0.1)\n"
RIGHT = {
    "computed in the step": _run(OPT, STEP.replace("self.mix @", "self.mixer() @")),
    "a constant": _run(OPT + "        self.mix = self.mixer().detach()\n"),
    "made under no_grad": _run(OPT + "        with torch.no_grad():\n            self.mix = self.mixer()\n"),
    "made of data": _run(OPT + "        self.mix = torch.eye(5).softmax(1)\n"),
    "weights that nobody trains": _run(
        "        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)\n        self.mix = self.mixer()\n"
    ),
    "old values of what the step also runs": _run(
        OPT + "        self.first = self.net(xs[0])\n",
        STEP.replace("self.mix @ x), y", "x), y + self.first"),
    ),
    "old values by a method that the step calls as well": _run(
        OPT + "        self.first = self.embed(xs[0])\n\n    def embed(self, x):\n        return self.net(x)\n",
        STEP.replace("self.net(self.mix @ x), y", "self.embed(x), y + self.first"),
    ),
    "old values of a part of the model": HEAD
    + """

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.encoder(x))


class Run:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.first = self.model.encoder(xs[0])

    def step(self, x, y):
        loss = F.mse_loss(self.model(x), y) + self.first.exp().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


run = Run(Model())
for x, y in zip(xs, ys):
    run.step(x, y)
""",
    "a copy of a weight": _run(
        OPT + "        self.anchor = self.mixer.logits.clone()\n",
        STEP.replace("self.mix @", "self.mixer() @").replace(
            "x), y)", "x), y) + (self.mixer.logits - self.anchor).pow(2).sum()"
        ),
    ),
    "made anew for each epoch": _run(
        OPT + "\n    def refresh(self):\n        self.mix = self.mixer()\n",
        rest="\n\nrun = Run()\nfor epoch in range(2):\n    run.refresh()\n    for x, y in zip(xs, ys):\n        run.step(x, y)\n",
    ),
    "a list of weights": _run(
        OPT + "        self.named = [(n, p) for m in (self.mixer, self.net) for n, p in m.named_parameters()]\n"
        "        self.all = list(self.mixer.parameters())\n",
        STEP.replace("self.mix @", "self.mixer() @").replace(
            "x), y)", "x), y) + sum(p.pow(2).sum() for _, p in self.named)"
        ),
    ),
    "made of what each step changes": _run(
        OPT + "        self.count = torch.zeros(())\n        self.mix = self.mixer() * self.count\n",
        STEP.replace("self.opt.step()", "self.opt.step()\n        self.count = self.count + 1"),
    ),
    "with random numbers": _run(OPT + "        self.mix = self.mixer() + torch.randn(5, 5)\n"),
    "bound from outside as well": _run(
        OPT + "        self.mix = self.mixer()\n",
        rest="\n\nrun = Run()\nfor x, y in zip(xs, ys):\n    run.mix = run.mixer()\n    run.step(x, y)\n",
    ),
    "read only for a report": _run(
        OPT + "        self.mix = self.mixer()\n\n    def report(self):\n        return self.mix.mean().item()\n",
        STEP.replace("self.mix @", "self.mixer() @"),
    ),
}
WRONG = {
    "a setup": (
        _run("\n    def setup(self):\n" + OPT + "        self.mix = self.mixer()\n", rest=RUN.replace("Run()", "Run()\nrun.setup()")),
        ["-        self.mix = self.mixer()", "-        loss = F.mse_loss(self.net(self.mix @ x), y)",
         "+        mix = self.mixer()", "+        loss = F.mse_loss(self.net(mix @ x), y)"],
    ),
    "a place that is held, and two reads": (
        _run(
            "        self.mix = None\n        self.build()\n\n    def build(self):\n" + OPT + "        self.mix = self.mixer()\n",
            STEP.replace("x), y)", "x), y) + self.mix.std()"),
        ),
        ["-        self.mix = None", "-        self.mix = self.mixer()",
         "-        loss = F.mse_loss(self.net(self.mix @ x), y) + self.mix.std()",
         "+        mix = self.mixer()", "+        loss = F.mse_loss(self.net(mix @ x), y) + mix.std()"],
    ),
    "data of the constructor, and a line before": (
        _run(
            OPT + "        mask = torch.eye(5) + torch.ones(5, 5)\n        weight = self.mixer() * mask\n"
            "        self.mix = weight / weight.sum(1, keepdim=True)\n"
        ),
        ["-        self.mix = weight / weight.sum(1, keepdim=True)", "+        self.mask = mask",
         "-        loss = F.mse_loss(self.net(self.mix @ x), y)", "+        weight = self.mixer() * self.mask",
         "+        mix = weight / weight.sum(1, keepdim=True)", "+        loss = F.mse_loss(self.net(mix @ x), y)"],
    ),
    "a helper that makes it, data that is held already": (
        HEAD + """

def smooth(logits, mask):
    return torch.softmax(logits, 1) * mask


class Net(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.mask, self.logits, self.head = None, nn.Parameter(torch.zeros(5, 5)), nn.Linear(4, 2)
        self.keep = mask
        self.mix = smooth(self.logits, mask)

    def forward(self, x):
        return self.head(self.mix @ x)


net = Net(torch.ones(5, 5))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in zip(xs, ys):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        ["-        self.mix = smooth(self.logits, mask)", "-        return self.head(self.mix @ x)",
         "+        mix = smooth(self.logits, self.keep)", "+        return self.head(mix @ x)"],
    ),
    "epochs and batches in one method": (
        _run(
            OPT + "        self.mix = self.mixer()\n",
            """
    def fit(self):
        for epoch in range(2):
            for x, y in zip(xs, ys):
                loss = F.mse_loss(self.net(self.mix @ x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
""",
            "\n\nRun().fit()\n",
        ),
        ["-        self.mix = self.mixer()", "-                loss = F.mse_loss(self.net(self.mix @ x), y)",
         "+                mix = self.mixer()", "+                loss = F.mse_loss(self.net(mix @ x), y)"],
    ),
    "a name of the script that a function reads": (
        HEAD + """mixer, net = Mixer(5), nn.Linear(4, 2)
opt = torch.optim.SGD([*mixer.parameters(), *net.parameters()], lr=0.1)
mix = mixer()


def step(x, y):
    loss = F.mse_loss(net(mix @ x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


for x, y in zip(xs, ys):
    step(x, y)
""",
        ["-mix = mixer()", "+    mix = mixer()"],
    ),
    "a name that a closure reads": (
        HEAD + """

def main():
    mixer, net = Mixer(5), nn.Linear(4, 2)
    opt = torch.optim.LBFGS([*mixer.parameters(), *net.parameters()])
    mix = mixer()

    def closure():
        opt.zero_grad()
        loss = F.mse_loss(net(mix @ xs[0]), ys[0])
        loss.backward()
        return loss

    opt.step(closure)


main()
""",
        ["-    mix = mixer()", "+        mix = mixer()"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the value may be meant as it is, or would not come out the same."""
    assert rewritten(tmp_path, "compute_in_step", source, "loss.backward()") == source


@pytest.mark.parametrize(("source", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The value is computed where it is read; a second time nothing is left to do."""
    after = rewritten(tmp_path, "compute_in_step", source, "loss.backward()")
    assert diff_lines(source, after) == changes
    assert rewritten(tmp_path, "compute_in_step", after, "loss.backward()") == after
