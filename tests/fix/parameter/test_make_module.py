"""A plain class that holds layers becomes a module."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SOURCE = """import torch
from torch import nn


class Expert:
    def __init__(self, width):
        self.out = nn.Linear(width, 1)

    def __call__(self, x):
        return self.out(x)


class Model(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.experts = [Expert(width) for _ in range(3)]

    def forward(self, x):
        return sum(expert(x) for expert in self.experts)


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
RIGHT = {
    "a module already": SOURCE.replace("class Expert:", "class Expert(nn.Module):"),
    "a class with a base": SOURCE.replace("class Expert:", "class Expert(Base):"),
    "no layers": SOURCE.replace("nn.Linear(width, 1)", "width"),
    "a name that modules use": SOURCE.replace("def __call__(", "def forward("),
    "kept by no module": SOURCE.replace("class Model(nn.Module):", "class Model:"),
}


def test_the_class_becomes_a_module_and_the_list_a_module_list(tmp_path: pathlib.Path) -> None:
    """Its constructor calls that of modules, and its call is a forward."""
    after = rewritten(tmp_path, "make_module", SOURCE, "optimizer =")
    assert diff_lines(SOURCE, after) == [
        "-class Expert:",
        "+class Expert(nn.Module):",
        "+        super().__init__()",
        "-    def __call__(self, x):",
        "+    def forward(self, x):",
        "-        self.experts = [Expert(width) for _ in range(3)]",
        "+        self.experts = nn.ModuleList(Expert(width) for _ in range(3))",
    ]
    assert rewritten(tmp_path, "make_module", after, "optimizer =") == after


def test_a_single_object(tmp_path: pathlib.Path) -> None:
    """It needs no list."""
    source = SOURCE.replace("[Expert(width) for _ in range(3)]", "Expert(width)")
    after = rewritten(tmp_path, "make_module", source, "optimizer =")
    assert "+class Expert(nn.Module):" in diff_lines(source, after)
    assert "ModuleList" not in after


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_others_stay(source: str, tmp_path: pathlib.Path) -> None:
    """What is a module, inherits something, or holds no layers."""
    assert rewritten(tmp_path, "make_module", source, "optimizer =") == source
