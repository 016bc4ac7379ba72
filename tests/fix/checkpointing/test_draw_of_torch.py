"""What a module draws of Python's or NumPy's generators is drawn of torch's, which the replay of a checkpoint restores."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import random

import numpy as np
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.scale = random.random()
        self.rng = random.Random(seed)
        self.dice = np.random.default_rng(seed)
        self.layers = nn.ModuleList()

    def forward(self, x):
        picked = DRAWN
        return x * picked


class Data:
    def __getitem__(self, index):
        return random.random()
"""
DRAWS = {
    "random.random()": "torch.rand(()).item()",
    "np.random.rand()": "torch.rand(()).item()",
    "self.rng.random()": "torch.rand(()).item()",
    "self.dice.random()": "torch.rand(()).item()",
    "np.random.randn()": "torch.randn(()).item()",
    "np.random.rand(4, 2)": "torch.rand(4, 2).numpy()",
    "self.dice.standard_normal((2, 3))": "torch.randn((2, 3)).numpy()",
    "random.uniform(0.5, 1.5)": "torch.empty(()).uniform_(0.5, 1.5).item()",
    "random.randint(0, 3)": "int(torch.randint(0, 4, ()))",
    "np.random.randint(0, 3)": "int(torch.randint(0, 3, ()))",
    "random.randrange(4)": "int(torch.randint(4, ()))",
    "random.choice(self.layers)": "self.layers[int(torch.randint(len(self.layers), ()))]",
}


@pytest.mark.parametrize(("drawn", "after"), DRAWS.items())
def test_a_draw_of_a_module(drawn: str, after: str, tmp_path: pathlib.Path) -> None:
    """The same distribution, of torch's generator; what is drawn once, or for the data, stays."""
    source = SOURCE.replace("DRAWN", drawn)
    changed = rewritten(tmp_path, "draw_of_torch", source)
    assert changed_lines(source, changed) == [f"picked = {after}"]


@pytest.mark.parametrize(
    "drawn",
    [
        "torch.rand(())",
        "np.random.rand(*sizes)",
        "random.sample(range(4), 2)",
        "np.random.choice(self.n)",
        "mine.random()",
    ],
)
def test_what_is_no_draw_of_one_number(drawn: str, tmp_path: pathlib.Path) -> None:
    """Arrays, samples and other objects are left to the author."""
    source = SOURCE.replace("DRAWN", drawn)
    assert rewritten(tmp_path, "draw_of_torch", source) == source


def test_a_class_that_holds_the_training(tmp_path: pathlib.Path) -> None:
    """Lightning's module draws for its data; what it checkpoints is another."""
    source = SOURCE.replace("DRAWN", "random.random()").replace("(nn.Module)", "(lightning.LightningModule)")
    source = "import lightning\n" + source
    assert rewritten(tmp_path, "draw_of_torch", source) == source


def test_the_same_distribution(tmp_path: pathlib.Path) -> None:
    """Each spelling gives numbers of the kind and range of what it replaces."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    spelled = {
        drawn: eval(after, {"torch": torch, "self": type("S", (), {"layers": "abc"}), "len": len, "int": int})
        for drawn, after in DRAWS.items()
    }  # noqa: S307
    assert 0 <= spelled["random.random()"] < 1
    assert 0.5 <= spelled["random.uniform(0.5, 1.5)"] <= 1.5
    assert spelled["random.choice(self.layers)"] in "abc"
    ends = {eval(DRAWS["random.randint(0, 3)"], {"torch": torch, "int": int}) for _ in range(99)}  # noqa: S307
    assert ends == {0, 1, 2, 3}


def test_a_function_that_is_checkpointed(tmp_path: pathlib.Path) -> None:
    """By its name; another function of the program may draw for the data."""
    source = (
        "import random\nimport torch\nfrom torch.utils.checkpoint import checkpoint\n"
        "def encode(x):\n    return x * random.random()\n"
        "def load():\n    return random.random()\n"
        "y = checkpoint(encode, x, use_reentrant=False)\n"
    )
    changed = rewritten(tmp_path, "draw_of_torch", source)
    assert changed_lines(source, changed) == ["return x * torch.rand(()).item()"]


CALLED = """import numpy as np
import torch
from torch import nn


class Dropper:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.first = self.rng.random()

    def __call__(self, edges):
        return edges[:, self.rng.random(edges.size(1)) > 0.5]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropper = Dropper(0)

    def forward(self, x, edges):
        return x + self.dropper(edges).sum()
"""


def test_a_draw_of_what_a_module_calls(tmp_path: pathlib.Path) -> None:
    """In a callable object; what it draws once, when it is made, stays."""
    after = rewritten(tmp_path, "draw_of_torch", CALLED)
    assert changed_lines(CALLED, after) == ["return edges[:, torch.rand(edges.size(1)).numpy() > 0.5]"]
