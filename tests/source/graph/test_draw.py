"""What draws from torch's default generator behind a place."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.graph.draw import draws, draws_behind
from tests.fix.rewriting import line_of, write

HEAD = """import random
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
g = torch.Generator().manual_seed(0)
net = nn.Linear(4, 2)
mark = 0
"""
NONE = {
    "nothing": "loss = net(x).sum()\n",
    "a generator of its own": "x = torch.randn(4, generator=g)\n",
    "another library": "x = np.random.rand(4) + random.random()\n",
    "a loader with a generator": "data = torch.utils.data.DataLoader(rows, shuffle=True, generator=g)\n",
    "a rate of zero": "drop = nn.Dropout(0.0)\nF.dropout(x, p=0.0)\nnn.TransformerEncoderLayer.__doc__\n",
    "layers without random weights": "norm = nn.LayerNorm(4)\nloss = nn.MSELoss()\nact = nn.ReLU()\n",
    "initialisers of one value": "nn.init.zeros_(net.weight)\n",
}
SOME = {
    "a draw": "x = torch.randn(4)\n",
    "a method": "x = torch.empty(4).uniform_()\n",
    "an initialiser": "nn.init.xavier_uniform_(net.weight)\n",
    "a layer": "head = nn.Linear(4, 2)\n",
    "a loader": "data = torch.utils.data.DataLoader(rows)\n",
    "dropout": "y = F.dropout(x, 0.1)\n",
    "an encoder that drops by default": "block = nn.TransformerEncoderLayer(8, 2)\n",
    "a function of the program": "def batch(n):\n    return torch.randint(0, 2, (n,))\nbatch(3)\n",
    "a class of the program": "class Head(nn.Module):\n    def __init__(self):\n        self.out = nn.Linear(2, 2)\nHead()\n",
    "a forward": "class Noise(nn.Module):\n    def forward(self, x):\n        return x + torch.randn_like(x)\n",
}


def _behind(folder: pathlib.Path, source: str, words: str) -> bool:
    program = write(folder, {"train.py": source})
    file = program.order[0]
    line = line_of(source, words)
    found = [one for one in file.walk() if isinstance(one, ast.stmt) and one.lineno == line]
    return draws_behind(found[0], file, program)


@pytest.mark.parametrize("rest", NONE.values(), ids=NONE)
def test_nothing_draws(tmp_path, rest: str) -> None:
    """Generators, other libraries, constants and what came before leave torch's default generator alone."""
    assert not _behind(tmp_path, f"{HEAD}{rest}", "mark =")


@pytest.mark.parametrize("rest", SOME.values(), ids=SOME)
def test_something_draws(tmp_path, rest: str) -> None:
    """Draws, initialisers, layers, loaders and dropout, in what runs behind, also by a call."""
    assert _behind(tmp_path, f"{HEAD}{rest}", "mark =")


def test_behind_the_calls_of_a_function(tmp_path) -> None:
    """What runs behind a place in a function is what stands behind the calls of it, not what stood before them."""
    build = "def build():\n    mark = 1\n    return mark\n"
    before = f"{HEAD.replace('mark = 0', '')}{build}def main():\n    head = nn.Linear(2, 2)\n    build()\nmain()\n"
    behind = f"{HEAD.replace('mark = 0', '')}{build}def main():\n    build()\n    head = nn.Linear(2, 2)\nmain()\n"
    assert not _behind(tmp_path, before, "mark = 1")
    assert _behind(tmp_path, behind, "mark = 1")


def test_what_a_call_stands_in_runs_behind_it(tmp_path) -> None:
    """`Job().run()` runs behind what `Job.__init__` does."""
    source = (
        "import torch\nclass Job:\n    def __init__(self):\n        mark = 1\n"
        "    def run(self):\n        return torch.rand(2)\nJob().run()\n"
    )
    assert _behind(tmp_path, source, "mark = 1")
    assert not _behind(tmp_path, source.replace("Job().run()", "Job()"), "mark = 1")


def test_rates_that_are_settings(tmp_path) -> None:
    """A rate that a call hands in counts as what the call says."""
    source = (
        "import torch\nfrom torch import nn\nclass Net(nn.Module):\n    def __init__(self, rate=0.1):\n"
        "        self.drop = nn.Dropout(rate)\nnet = Net(rate=0.0)\nmark = 0\n"
    )
    assert not _behind(tmp_path, source, "mark =")
    assert _behind(tmp_path, source.replace("rate=0.0", "rate=0.2"), "mark =")


def test_code_of_a_node(tmp_path) -> None:
    """The values of an expression are random where what it calls draws."""
    source = "import torch\ndef table(n):\n    return torch.randn(n)\na = table(3)\nb = torch.arange(3)\n"
    program = write(tmp_path, {"train.py": source})
    file = program.order[0]
    found = [one.value for one in file.walk() if isinstance(one, ast.Assign)]
    assert [draws(one, file, program) for one in found] == [True, False]
