"""Programs whose loss has lost its graph: the guilty line is named first, and an early fix gives the gradients that were meant."""

from __future__ import annotations

import pathlib
import runpy
import sys
import traceback

import pytest

from explainer.ingest.text import read_text
from explainer.workflow import explain_incident, plan_report
from tests.fix.graph.cut_program import Broken
from tests.fix.graph.cut_programs import PROGRAMS

EARLY = 3


def run(folder: pathlib.Path) -> dict | str:
    """The gradients that a program ends with, or the traceback of its failure."""
    import torch

    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        return runpy.run_path(str(folder / "train.py"))["grads"]
    except Exception:  # noqa: BLE001 - the user's program may fail in any way
        return traceback.format_exc()
    finally:
        torch.set_grad_enabled(True)
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]


def meant(program: Broken, folder: pathlib.Path) -> dict | str:
    """The gradients of the program with its author's own change."""
    folder.mkdir()
    for name, text in program.files.items():
        for old, new in program.cure.get(name, ()):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / name).write_text(text)
    return run(folder)


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_lost_graph_is_found_and_mended(program: Broken, tmp_path: pathlib.Path, catalog) -> None:
    """The first culprit is the line at fault; one of the first fixes trains with the gradients of the author's own change."""
    torch = pytest.importorskip("torch")
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in program.files.items():
        (folder / name).write_text(text)
    printed = run(folder)
    assert isinstance(printed, str), "the program does not fail"
    report = plan_report(explain_incident(next(iter(read_text(printed))), None, catalog), catalog, str(folder))
    assert report.faults == ()
    assert report.findings[0].cause == program.cause
    assert program.guilty in (report.findings[0].culprits[0].code or "")
    wanted = meant(program, tmp_path / "meant")
    assert isinstance(wanted, dict), wanted
    outcomes = [outcome(fix.changes, program, folder) for fix in report.findings[0].fixes[:EARLY] if fix.changes]
    equal = [
        isinstance(one, dict)
        and one.keys() == wanted.keys()
        and all(torch.equal(one[key], wanted[key]) for key in wanted)
        for one in outcomes
    ]
    assert any(equal), outcomes


def outcome(changes, program: Broken, folder: pathlib.Path) -> dict | str:
    """What the program ends with after a fix; its files are as they were afterwards."""
    for change in changes:
        pathlib.Path(change.file).write_bytes(change.after)
    try:
        return run(folder)
    finally:
        for name, text in program.files.items():
            (folder / name).write_text(text)
