"""What a training loop or its step is given, made once from weights, is computed in each round."""

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


def step(net, opt, x, y, mix):
    loss = F.mse_loss(net(mix @ x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


def train(net, mixer, mix, opt, pairs):
    for x, y in pairs:
        out = net(mix @ x)
        loss = F.mse_loss(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()


torch.manual_seed(0)
xs, ys = torch.randn(3, 5, 4), torch.randn(3, 5, 2)
mixer, net = Mixer(5), nn.Linear(4, 2)
opt = torch.optim.SGD([*mixer.parameters(), *net.parameters()], lr=0.1)
"""
RIGHT = {
    "computed in the loop": HEAD + "for x, y in zip(xs, ys):\n    mix = mixer()\n    step(net, opt, x, y, mix)\n",
    "a constant": HEAD + "mix = mixer().detach()\nfor x, y in zip(xs, ys):\n    step(net, opt, x, y, mix)\n",
    "data": HEAD + "mix = torch.eye(5)\nfor x, y in zip(xs, ys):\n    step(net, opt, x, y, mix)\n",
    "read after the loop": HEAD
    + "mix = mixer()\nfor x, y in zip(xs, ys):\n    step(net, opt, x, y, mix)\nprint(mix.shape)\n",
    "made anew each epoch": HEAD
    + "mix = mixer()\nfor epoch in range(2):\n    for x, y in zip(xs, ys):\n        step(net, opt, x, y, mix)\n    mix = mixer()\n",
    "weights that are not in reach": HEAD.replace("net, mixer, mix", "net, mix")
    + "def main(mixer):\n    mix = mixer()\n    train(net, mix, opt, list(zip(xs, ys)))\nmain(mixer)\n",
    "old values of what the step runs": HEAD
    + "first = net(xs[0])\nfor x, y in zip(xs, ys):\n    step(net, opt, x, first, torch.eye(5))\n",
}
WRONG = {
    "an argument of the step": (
        HEAD + "mix = mixer()\nfor x, y in zip(xs, ys):\n    step(net, opt, x, y, mix)\n",
        ["-mix = mixer()", "+    mix = mixer()"],
    ),
    "two loops": (
        HEAD
        + "mix = mixer()\nfor epoch in range(2):\n    for x, y in zip(xs, ys):\n        step(net, opt, x, y, mix=mix)\n",
        ["-mix = mixer()", "+        mix = mixer()"],
    ),
    "an argument of the loop's function": (
        HEAD + "mix = mixer()\ntrain(net, mixer, mix, opt, list(zip(xs, ys)))\n",
        ["+        mix = mixer()"],
    ),
    "under another name": (
        HEAD + "m, n = mixer, 2\nprop = m() * n\ntrain(net, m, prop, opt, list(zip(xs, ys)))\n",
        ["+        mix = mixer() * n"],
    ),
}


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the value may be meant as it is, or cannot be computed there."""
    assert rewritten(tmp_path, "compute_argument_in_loop", source, "loss.backward()") == source


@pytest.mark.parametrize(("source", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The value is computed in the round that reads it; a second time nothing is left to do."""
    after = rewritten(tmp_path, "compute_argument_in_loop", source, "loss.backward()")
    assert diff_lines(source, after) == changes
    assert rewritten(tmp_path, "compute_argument_in_loop", after, "loss.backward()") == after
