"""What is rounded is passed without a graph to an operation that has no derivative."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Proposal
from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord
from tests.fix.rewriting import best, changed_lines, failed, write

SOURCE = """import torch
from torch import nn


class Pillars(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(2))
        self.size = 0.5

    def forward(self, batch):
        points = batch["points"]
        which, xy = points[:, 0], points[:, 1:] + self.offset
        cells = torch.floor(xy / self.size)
        kept = (cells >= 0).all(1)
        xy, cells = xy[kept], cells[kept]
        cells = torch.cat([which[kept, None], cells], 1)
        found, inverse = torch.unique(cells, return_inverse=True, dim=0)
        return found, inverse


model = Pillars()
"""
DETACHED = "found, inverse = torch.unique(cells.detach(), return_inverse=True, dim=0)"


def proposed(source: str, folder: pathlib.Path, operation: str = "unique_dim") -> Proposal | None:
    raised = ExceptionRecord(
        type="NotImplementedError", message=f"the derivative for '{operation}' is not implemented."
    )
    program = write(folder, {"train.py": source})
    return best("detach_without_slope", program, incident=replace(failed(), exceptions=(raised,)))


FORMS = {
    "a function": (SOURCE, DETACHED, "unique_dim"),
    "a method that rounds": (SOURCE.replace("torch.floor(xy / self.size)", "(xy / self.size).round()"), DETACHED, "unique_dim"),
    "a method": (
        SOURCE.replace("torch.unique(cells, return_inverse=True, dim=0)", "cells.unique(return_inverse=True)"),
        "found, inverse = cells.detach().unique(return_inverse=True)", "_unique2",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "line", "operation"), FORMS.values(), ids=FORMS)
def test_what_is_rounded(tmp_path: pathlib.Path, source: str, line: str, operation: str) -> None:
    """Beside it there may be what the batch hands in."""
    proposal = proposed(source, tmp_path, operation)
    assert proposal is not None
    assert changed_lines(source, splice(source, proposal.edits)) == [line]


def test_what_has_a_slope(tmp_path: pathlib.Path) -> None:
    """Whether its graph is meant is the author's to say: the line alone."""
    proposal = proposed(SOURCE.replace("torch.floor(xy / self.size)", "xy / self.size"), tmp_path)
    assert proposal is not None
    assert not proposal.edits


def test_another_operation(tmp_path: pathlib.Path) -> None:
    """The message speaks of something else."""
    assert proposed(SOURCE, tmp_path, "bincount") is None
