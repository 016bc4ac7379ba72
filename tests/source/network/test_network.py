"""Which losses of one statement are known to go through other networks."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.network.network import returned_losses, share_nothing
from tests.fix.rewriting import write

SOURCE = """import torch
from torch import nn
import torch.nn.functional as F


class Agent:
    def __init__(self):
        self.a, self.b, self.c = nn.Linear(2, 2), nn.Linear(2, 1), nn.Linear(2, 1)
        self.nets = nn.ModuleDict({"a": self.a, "b": self.b})
        self.mse = nn.MSELoss()

    def q(self, x):
        return self.b(x).squeeze(-1)

    def losses(self, x, y):
"""
APART = {
    "a network each": "        return self.a(x).mean(), self.b(x).mean()\n",
    "by names": "        first = F.mse_loss(self.b(x), y)\n        second = self.c(x).sum()\n        return {'b': first, 'c': second}\n",
    "one criterion": "        return self.mse(self.b(x), y), self.mse(self.c(x), y)\n",
    "by a method": "        return self.q(x).mean(), self.c(x).mean()\n",
    "handed to a function": "        return score(self.b, x), score(self.c, x)\n",
}
TOGETHER = {
    "what one made": "        return self.b(x).mean(), -self.b(self.a(x)).mean()\n",
    "by a method": "        return F.mse_loss(self.q(x), y), -self.q(self.a(x)).mean()\n",
    "a common beginning": "        z = self.a(x)\n        return self.b(z).mean(), self.c(z).mean()\n",
    "handed to a function": "        return score(self.b, x), score(self.b, self.a(x))\n",
    "a table of networks": "        return self.nets['a'](x).mean(), self.nets['b'](x).mean()\n",
    "a function that is not known": "        return score(self.b, x), other(x)\n",
    "no network": "        return x.mean(), self.b(x).mean()\n",
}
TAIL = """

def score(net, x):
    return net(x).mean()


agent = Agent()
agent.losses(torch.ones(1, 2), torch.ones(1))
"""


def _is_apart(folder: pathlib.Path, body: str) -> bool:
    program = write(folder, {"train.py": SOURCE + body + TAIL})
    (file,) = program.parsed()
    function = next(one for one in file.walk() if isinstance(one, ast.FunctionDef) and one.name == "losses")
    found = returned_losses(function)
    assert found is not None
    return share_nothing(found[1], found[0], file, program)


@pytest.mark.parametrize("body", TOGETHER.values(), ids=TOGETHER)
def test_losses_that_may_share_a_network(body: str, tmp_path: pathlib.Path) -> None:
    """A network of both, or one that is not known."""
    assert not _is_apart(tmp_path, body)


@pytest.mark.parametrize("body", APART.values(), ids=APART)
def test_losses_that_share_none(body: str, tmp_path: pathlib.Path) -> None:
    """Each goes through networks of its own."""
    assert _is_apart(tmp_path, body)
