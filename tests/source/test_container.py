"""What `x[i] = v` writes into: a tensor, or a list or dictionary."""

from __future__ import annotations

import pathlib

import pytest

from explainer.source.graph.write import find_writes
from tests.fix.rewriting import write

SOURCE = """import torch
class Memory:
    def __init__(self):
        self.cells = FIRST
    def reset(self, batch):
        self.cells = SECOND
    def write(self, rows, value):
        self.cells[rows] = value
"""


@pytest.mark.parametrize(
    ("first", "second", "is_write"),
    [
        ("None", "self.prior.repeat(batch, 1)", True),
        ("None", "{}", False),
        ("[]", "[]", False),
        ("torch.zeros(3)", "torch.zeros(4)", True),
    ],
)
def test_an_attribute(tmp_path: pathlib.Path, first: str, second: str, *, is_write: bool) -> None:
    """What it is before it is filled says nothing."""
    program = write(tmp_path, {"train.py": SOURCE.replace("FIRST", first).replace("SECOND", second)})
    assert [one.name for one in find_writes(program)] == (["self.cells"] if is_write else [])
