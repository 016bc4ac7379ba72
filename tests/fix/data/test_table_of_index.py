"""The line that makes the table of a refused index is pointed at; nothing is edited."""

from __future__ import annotations

import pathlib

from tests.fix.rewriting import best, failed, line_of, write

NET = """import torch
from torch import nn

ROWS = 20

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(ROWS, 8)
        self.place = nn.Embedding(64, 8)
        self.out = nn.Linear(8, 2)

    def forward(self, ids, at):
        x = self.token(ids)
        both = self.token(ids) + self.place(at)
        return self.out(x + both)
"""


def pointed(folder: pathlib.Path, words: str) -> str | None:
    """The line that a failure in the line with these words is traced to."""
    program = write(folder, {"net.py": NET})
    incident = failed({"net.py": line_of(NET, words)}, "index out of range in self")
    proposal = best("table_of_index", program, incident=incident)
    assert proposal is None or not proposal.edits
    return proposal.culprit.code if proposal is not None else None


def test_the_table_is_shown(tmp_path: pathlib.Path) -> None:
    """One table in the line: where it is made."""
    assert pointed(tmp_path, "x = self.token(ids)") == "self.token = nn.Embedding(ROWS, 8)"


def test_two_tables_or_none(tmp_path: pathlib.Path) -> None:
    """Which of two failed the line does not say; a linear layer is none."""
    assert pointed(tmp_path, "both = ") is None
    assert pointed(tmp_path, "return self.out") is None
