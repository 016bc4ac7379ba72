"""A flag that switches grad mode off is cleared where the parameters are unfrozen."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = """import contextlib
import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(3, 3)
        self.frozen = False

"""
FREEZE = """    def freeze(self):
        self.frozen = True
        for p in self.trunk.parameters():
            p.requires_grad_(False)

"""
UNFREEZE = """    def unfreeze(self, layers=1):
        \"\"\"Let the top train.\"\"\"
        for p in self.trunk.parameters():
            p.requires_grad = True

"""
FORWARDS = {
    "a switch": "    def forward(self, x):\n        with torch.set_grad_enabled(self.training and not self.frozen):\n            return self.trunk(x)\n",
    "an if": "    def forward(self, x):\n        if self.frozen:\n            with torch.no_grad():\n                return self.trunk(x)\n        return self.trunk(x)\n",
    "one of two contexts": "    def forward(self, x):\n        with torch.no_grad() if self.frozen else contextlib.nullcontext():\n            return self.trunk(x)\n",
}


@pytest.mark.parametrize("forward", FORWARDS.values(), ids=FORWARDS)
def test_the_flag_is_cleared(forward: str, tmp_path: pathlib.Path) -> None:
    """Behind the docstring, whichever way the forward asks."""
    source = TOP + FREEZE + UNFREEZE + forward
    after = rewritten(tmp_path, "clear_flag_of_freeze", source)
    assert diff_lines(source, after) == ["+        self.frozen = False"]
    assert after.index("the top train") < after.index("self.frozen = False", after.index("unfreeze"))
    assert rewritten(tmp_path, "clear_flag_of_freeze", after) == after


def test_a_flag_that_says_it_the_other_way_round(tmp_path: pathlib.Path) -> None:
    """`learns = False` in freeze is set to True again."""
    source = (TOP + FREEZE + UNFREEZE + FORWARDS["a switch"]).replace("not self.frozen", "self.learns")
    source = source.replace("self.frozen = True", "self.learns = False").replace(
        "self.frozen = False", "self.learns = True"
    )
    assert diff_lines(source, rewritten(tmp_path, "clear_flag_of_freeze", source)) == ["+        self.learns = True"]


@pytest.mark.parametrize(
    "source",
    [
        TOP
        + FREEZE
        + UNFREEZE.replace("        for", "        self.frozen = layers == 0\n        for")
        + FORWARDS["an if"],
        TOP + FREEZE + UNFREEZE + "    def forward(self, x):\n        return self.trunk(x)\n",
        TOP + FREEZE.replace("self.frozen = True", "self.depth = 0") + UNFREEZE + FORWARDS["a switch"],
        TOP + FREEZE + FORWARDS["a switch"],
    ],
    ids=["it is set", "nothing asks", "freezing sets another", "nothing unfreezes"],
)
def test_right_programs_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Only a class that freezes by a flag, asks it and forgets it."""
    assert rewritten(tmp_path, "clear_flag_of_freeze", source) == source
