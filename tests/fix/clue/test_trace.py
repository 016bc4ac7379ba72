"""Which traced line leads a finding: what the tracer saw, but no backward that only runs a segment again."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.clue.trace import traced_first
from explainer.fix.codemod import Context
from explainer.model.finding import Culprit
from explainer.model.incident import Incident
from explainer.model.trace import INDEX, REPLAYED, TracedLine
from tests.fix.rewriting import write

SOURCE = "model.eval()\nmask = draw()\nloss.backward()\n"


@pytest.mark.parametrize(("line", "order"), [(3, [1]), (2, [2, 1])])
def test_a_replay_in_a_library(tmp_path: pathlib.Path, line: int, order: list[int]) -> None:
    """A replayed line of the model leads; where the program's own line is the backward, what was found in the source does."""
    program = write(tmp_path, {"train.py": SOURCE})
    (path,) = program.files
    seen = TracedLine(kind=REPLAYED, operation="dropout", file="train.py", line=line, says="gives something else")
    context = Context(program=program, incident=Incident(traced=(seen,)))
    known = {(path, 1): Culprit(file=path, line=1, why="switches to eval mode")}
    assert [one for _, one in traced_first(known, "checkpoint/recompute-mismatch", context)] == order
    assert [one for _, one in traced_first({}, "checkpoint/recompute-mismatch", context)] == [line]


@pytest.mark.parametrize(("operation", "order"), [("arange", [3, 2]), ("randint", [2, 3])])
def test_positions_are_no_wrong_rows(tmp_path: pathlib.Path, operation: str, order: list[int]) -> None:
    """Where positions are counted the lookup leads, whose table is too short for them; where tokens are made, that line does."""
    program = write(tmp_path, {"train.py": SOURCE})
    (path,) = program.files
    seen = TracedLine(kind=INDEX, operation=operation, file="train.py", line=2, says="makes the integers")
    context = Context(program=program, incident=Incident(traced=(seen,)))
    known = {(path, 3): Culprit(file=path, line=3, why="looks up")}
    assert [one for _, one in traced_first(known, "shape/index-out-of-range", context)] == order
