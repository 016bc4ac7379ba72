"""The one function that writes in place as the message says is pointed at, where nothing was traced."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.model.trace import WRITE, TracedLine
from tests.fix.rewriting import failed, write

HEAD = """import torch
from torch import nn


class Net(nn.Module):
"""
MASKED = (
    HEAD
    + """    def parse(self, outputs, pad):
        outputs[0].masked_fill_(pad, 0.0)
        outputs[1].masked_fill_(pad, 1.0)
        return outputs

    def note(self, x):
        self.seen.add_(x)
"""
)
STATE = (
    HEAD
    + """    def step(self, x, cache):
        cache.h.copy_(cache.h * x)
        return cache.h

rows = torch.zeros(3)
rows[0] = 1
"""
)


def lines(folder: pathlib.Path, source: str, op: str, *, is_traced: bool = False) -> list[int]:
    program = write(folder, {"train.py": source})
    traced = (TracedLine(kind=WRITE, operation="add_", file="train.py", line=1),) if is_traced else ()
    context = Context(program=program, incident=replace(failed(), traced=traced), fields={"op": op} if op else {})
    found = list(find_codemod("only_write")(context))
    assert not any(one.edits for one in found)
    return [one.culprit.line or 0 for one in found]


@pytest.mark.parametrize(
    ("source", "op", "expected"),
    [(MASKED, "MaskedFill", [7, 8]), (STATE, "CopyBackwards", [7]), (MASKED, "Relu", []), (MASKED, "", [])],
    ids=["one function", "the one that a backward needs", "another operation", "no operation"],
)
def test_where_the_message_leads(source: str, op: str, expected: list[int], tmp_path: pathlib.Path) -> None:
    assert lines(tmp_path, source, op) == expected


def test_two_functions_write_so(tmp_path: pathlib.Path) -> None:
    """Which of them is meant nothing tells."""
    other = MASKED + "\n    def other(self, x, pad):\n        x.masked_fill_(pad, 0.0)\n"
    assert lines(tmp_path, other, "MaskedFill") == []


def test_a_trace_knows_better(tmp_path: pathlib.Path) -> None:
    assert lines(tmp_path, MASKED, "MaskedFill", is_traced=True) == []
