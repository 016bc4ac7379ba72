"""What a bank was given is handed on where the bank is read back at once."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import STARVING_CUT, TracedLine
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

BANK = """import torch
from torch import nn


class Bank(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.register_buffer("rows", torch.zeros(rows, width))
        self.seen = 0

    def put(self, at, fresh):
        WRITE
        READ


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.bank = nn.Linear(3, 4), Bank(10, 4)

    def forward(self, at, x):
        return self.bank.put(at, self.layer(x))
"""
WRITE, READ = "self.rows[at] = fresh.detach()", "return self.rows[at]"
LEFT = {
    "all rows are handed out": (WRITE, "return self.rows"),
    "other rows are handed out": (WRITE, "return self.rows[at + 1]"),
    "the rows are changed between": (WRITE, "self.rows[at] *= 0.5\n        return self.rows[at]"),
    "a method that may change them runs between": (WRITE, "self.normalise()\n        return self.rows[at]"),
    "a function is given the bank between": (WRITE, "decay(self)\n        return self.rows[at]"),
    "the index is bound anew between": (WRITE, "at = at + 1\n        return self.rows[at]"),
    "the argument is bound anew between": (WRITE, "fresh = fresh * 2\n        return self.rows[at]"),
    "another value is written": ("self.rows[at] = 0.9 * self.rows[at] + 0.1 * fresh.detach()", READ),
    "a value of another kind is written": ("self.rows[at] = fresh.detach().half()", READ),
    "an index that is drawn": (
        "self.rows[torch.randperm(4)] = fresh.detach()",
        "return self.rows[torch.randperm(4)]",
    ),
    "the rows are read in a branch": (WRITE, "if self.seen:\n            return self.rows[at]\n        return fresh"),
    "targets that have no graph on purpose": (
        "self.targets[at] = fresh.detach()",
        "return self.targets[at]",
    ),
    "keys that queries are held against": ("self.keys[at] = fresh.detach()", "return self.keys[at]"),
    "a teacher's rows": ("self.teacher_rows[at] = fresh.detach()", "return self.teacher_rows[at]"),
    "a queue": ("self.queue[:, at] = fresh.detach()", "return self.queue[:, at]"),
    "the argument is handed on": (WRITE, "return fresh"),
}
MENDED = {
    "as it is": (WRITE, READ, "return fresh"),
    "through `data`": ("self.rows[at] = fresh.data", READ, "return fresh"),
    "a copy": ("self.rows[at] = fresh.detach().clone()", READ, "return fresh"),
    "a slice": (
        "self.rows[self.seen : self.seen + 4] = fresh.detach()",
        "return self.rows[self.seen : self.seen + 4]",
        "return fresh",
    ),
    "two indices": ("self.rows[at, :] = fresh.detach()", "return self.rows[at, :]", "return fresh"),
    "a name for the rows": (WRITE, "out = self.rows[at]\n        return out.tanh()", "out = fresh"),
    "a counter between": (WRITE, "self.seen += 1\n        return self.rows[at]", "return fresh"),
}


def _mended(tmp_path: pathlib.Path, source: str, *, traced: str | None) -> list[str]:
    program = write(tmp_path, {"net.py": source})
    (path,) = program.files
    line = line_of(source, traced) if traced else 1
    seen = TracedLine(kind=STARVING_CUT, operation="detach", file=path, line=line, says="`detach` starves 2 parameters")
    incident = replace(failed(), traced=(seen,) if traced else ())
    proposal = best("return_what_was_given", program, incident=incident)
    return diff_lines(source, splice(source, proposal.edits) or "") if proposal else []


@pytest.mark.parametrize(("written", "read"), LEFT.values(), ids=LEFT)
def test_what_is_read_back_is_left(tmp_path: pathlib.Path, written: str, read: str) -> None:
    """Nothing is proposed where the argument may not be what stands in the bank."""
    source = BANK.replace("WRITE", written).replace("READ", read)
    assert _mended(tmp_path, source, traced=written) == []


@pytest.mark.parametrize(("written", "read", "after"), MENDED.values(), ids=MENDED)
def test_the_argument_is_handed_on(tmp_path: pathlib.Path, written: str, read: str, after: str) -> None:
    """The line that reads the bank takes the argument, and the write stays as it is."""
    source = BANK.replace("WRITE", written).replace("READ", read)
    changed = next(one.strip() for one in read.splitlines() if "self.rows[" in one)
    assert _mended(tmp_path, source, traced=written) == [f"-        {changed}", f"+        {after}"]


def test_a_bank_of_which_no_trace_speaks_is_left(tmp_path: pathlib.Path) -> None:
    """A write of values alone is right wherever something else trains what was given."""
    assert _mended(tmp_path, BANK.replace("WRITE", WRITE).replace("READ", READ), traced=None) == []
