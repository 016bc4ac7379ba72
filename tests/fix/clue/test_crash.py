"""Which statements a failure names, and in what order."""

from __future__ import annotations

import ast
import pathlib
from dataclasses import replace

import pytest

from explainer.fix.clue.crash import crash_places, raised_at
from explainer.fix.codemod import Context
from explainer.model.incident import ExceptionRecord, Frame, Incident
from tests.fix.rewriting import write

SOURCE = "for x in loader:\n    step(x)\nwave.sub_(wave)\n"


def record(line: int, message: str) -> ExceptionRecord:
    return ExceptionRecord(type="RuntimeError", message=message, frames=(Frame(file="train.py", line=line, code=""),))


@pytest.mark.parametrize(
    ("outer", "wanted"),
    [
        ("Caught RuntimeError in DataLoader worker process 0.", [3, 1]),
        ("Caught RuntimeError in replica 1 on device 1.", [3, 1]),
        ("it failed as well", [1, 3]),
    ],
)
def test_a_worker_comes_before_those_that_wait(outer: str, wanted: list[int], tmp_path: pathlib.Path) -> None:
    """The process that only repeats what a worker raised names the loop, not the fault."""
    incident = Incident(exceptions=(record(3, "overlap"), record(1, outer)))
    context = Context(program=write(tmp_path, {"train.py": SOURCE}), incident=incident)
    assert [one.lineno for _, one in crash_places(context)] == wanted
    assert [one.lineno for _, one in raised_at(context)] == wanted
    assert [one.line for one in reversed(context.frames)] == wanted


@pytest.mark.parametrize(
    ("file", "wanted"),
    [("concurrent/futures/_base.py", 3), ("multiprocessing/pool.py", 3), ("concurrent/futures/thread.py", 1)],
)
def test_a_pool_hands_on_what_its_worker_raised(file: str, wanted: int, tmp_path: pathlib.Path) -> None:
    """The same error again, where the result was asked for."""
    waits = Frame(file=f"/usr/lib/python3.11/{file}", line=9, library="python")
    outer = record(1, "overlap")
    outer = replace(outer, frames=(*outer.frames, waits))
    incident = Incident(exceptions=(record(3, "overlap"), outer))
    context = Context(program=write(tmp_path, {"train.py": SOURCE}), incident=incident)
    assert next(one.lineno for _, one in raised_at(context)) == wanted


@pytest.mark.parametrize(
    ("mark", "wanted"), [((4, 8), "a = f(x)"), ((17, 25), "b = step(a)"), (None, "del a"), ((27, 32), "del a")]
)
def test_of_several_statements_on_a_line_the_marked_one(mark, wanted: str, tmp_path: pathlib.Path) -> None:
    """Python 3.11 and later say where on a line it failed; the columns are those of the line without its indentation."""
    source = "def run(x):\n    a = f(x);    b = step(a); del a\n"
    frame = Frame(file="train.py", line=2, code="a = f(x);    b = step(a); del a", mark=mark)
    incident = Incident(exceptions=(ExceptionRecord(type="RuntimeError", message="", frames=(frame,)),))
    context = Context(program=write(tmp_path, {"train.py": source}), incident=incident)
    assert [ast.unparse(one) for _, one in raised_at(context)] == [wanted]
