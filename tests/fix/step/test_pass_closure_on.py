"""A wrapper of optimizers hands the closure that it is given on to the one within."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SOURCE = """class Lookahead:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, closure=None):
        loss = self.optimizer.step()
        return loss
"""


def proposed(source: str, folder: pathlib.Path):
    program = write(folder, {"train.py": source})
    line = line_of(source, "self.optimizer.step(")
    frame = Frame(file=str(folder / "train.py"), line=line, function="step", code=source.splitlines()[line - 1].strip())
    raised = ExceptionRecord(type="AssertionError", message="SAM requires closure", frames=(frame,))
    return best("pass_closure_on", program, incident=replace(failed(), exceptions=(raised,)))


def test_it_is_handed_on(tmp_path: pathlib.Path) -> None:
    """By place, as the step takes it."""
    proposal = proposed(SOURCE, tmp_path)
    assert proposal is not None
    assert changed_lines(SOURCE, splice(SOURCE, proposal.edits)) == ["loss = self.optimizer.step(closure)"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        loss =", "        if closure is not None:\n            closure()\n        loss ="),
        ("closure=None", "*unused"),
        ("optimizer.step()", "optimizer.step(None)"),
    ],
    ids=["it runs it itself", "it is given none", "it says what it gives"],
)
def test_others_stay(old: str, new: str, tmp_path: pathlib.Path) -> None:
    """What reads its closure knows what to do with it."""
    assert proposed(SOURCE.replace(old, new), tmp_path) is None
