"""A walk over children that asks what to differentiate by goes over all modules."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch
from torch import nn


class Potential(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = nn.ModuleList(heads)
        self.wanted = set()
        for m in self.children():
            self.wanted.update(getattr(m, "derivatives", ()))

    def forward(self, inputs):
        for key in self.wanted:
            inputs[key].requires_grad_()
        for head in self.heads:
            inputs = head(inputs)
        return inputs


class Forces(nn.Module):
    derivatives = ["positions"]

    def forward(self, inputs):
        return torch.autograd.grad(inputs["energy"], [inputs[key] for key in self.derivatives])
"""
MESSAGE = "One of the differentiated Tensors does not require grad"
ASKS = [
    'getattr(m, "derivatives", ())',
    "m.derivatives",
    '[one for one in m.derivatives]',
]  # fmt: skip
RIGHT = {
    "all modules": SOURCE.replace("children()", "modules()"),
    "another attribute": SOURCE.replace('"derivatives", ()', '"outputs", ()'),
    "no attribute of its own": SOURCE.replace("self.derivatives", '("positions",)'),
}


@pytest.mark.parametrize("asks", ASKS)
def test_all_modules_are_asked(asks: str, tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace(ASKS[0], asks)
    after = rewritten(tmp_path, "ask_nested_modules", source, "torch.autograd.grad", message=MESSAGE)
    assert changed_lines(source, after) == ["for m in self.modules():"]


def test_a_comprehension_asks_them_too(tmp_path: pathlib.Path) -> None:
    loop = '        for m in self.children():\n            self.wanted.update(getattr(m, "derivatives", ()))\n'
    line = "        self.wanted = {key for m in self.children() for key in getattr(m, 'derivatives', ())}\n"
    source = SOURCE.replace(loop, line)
    after = rewritten(tmp_path, "ask_nested_modules", source, "torch.autograd.grad", message=MESSAGE)
    assert changed_lines(source, after) == [line.strip().replace("children", "modules")]


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_walks_stay(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "ask_nested_modules", source, "torch.autograd.grad", message=MESSAGE) == source
