"""The facade of the memory: fixes and verifications come together with the failures that they are of."""

from __future__ import annotations

import os
import pathlib
from dataclasses import replace

import pytest

from explainer import memory
from explainer.model.event import FIX, VERIFICATION
from explainer.model.journal import APPLIED, Record
from explainer.model.repair import Applied, Repair, Round
from tests.match.test_fingerprint import failure


@pytest.fixture(autouse=True)
def root(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project, with a state folder of its own beside it."""
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GRADFIX_NO_MEMORY", "")
    (tmp_path / "p").mkdir()
    return str(tmp_path / "p")


@pytest.fixture
def report(catalog):
    from explainer.workflow import explain_incident

    return explain_incident(failure(), None, catalog)


def see(report, root: str):
    """See the failure, as a run does: what was remembered of it before."""
    (told,), sightings = memory.recall_failures([report], root, way="run")
    memory.note(sightings)
    return told.seen


def record(root: str) -> Record:
    return Record(
        id="abc123", time=1.0, root=root, command="", cause="a/b", fix="the-fix", title="", state=APPLIED, files=()
    )


def test_a_fix_then_its_verification(report, root: str) -> None:
    """A fix that is applied, then verified by a command of its own, has cured the failure that it was applied for."""
    assert see(report, root) is None
    memory.note_fix(record(root), report, way="fix")
    assert (see(report, root).fix, see(report, root).is_verified) == ("the-fix", False)
    memory.note_verification("green", record(root), root)
    assert (see(report, root).fix, see(report, root).is_verified) == ("the-fix", True)
    memory.note_verification("red", record(root), root)
    assert see(report, root).fix is None
    assert see(report, root).times == 6


def test_a_verification_of_no_patch(report, root: str) -> None:
    """Where no patch is applied the verdict is kept all the same, for the history."""
    memory.note_verification("red", None, root)
    (event,) = memory.events_of(root)
    assert (event.kind, event.verdict, event.fingerprint) == (VERIFICATION, "red", None)


def test_a_repair(report, root: str) -> None:
    """What `run --fix` tried is kept with its verdicts, and the fix that stood names the journal's record."""
    rounds = tuple(Round(cause="a/b", fix=name, verdict=word) for name, word in (("one", "red"), ("two", "green")))
    kept = (Applied(cause="a/b", fix="two", title="", patch="", record="abc123"),)
    memory.note_repair(Repair(status="verified", exit_status=1, report=report, rounds=rounds, applied=kept), root)
    events = [(one.kind, one.fix, one.record, one.verdict) for one in memory.events_of(root)]
    assert events == [
        (FIX, "two", "abc123", None), (VERIFICATION, "one", None, "red"), (VERIFICATION, "two", "abc123", "green"),
    ]  # fmt: skip
    see(report, root)
    assert (see(report, root).fix, see(report, root).is_verified) == ("two", True)


def test_a_folder_that_is_no_unicode(report, tmp_path: pathlib.Path) -> None:
    """Names that are no Unicode neither fail nor cost what is remembered."""
    root = os.fsdecode(os.fsencode(str(tmp_path)) + b"/p\xff")
    os.mkdir(root)
    memory.note_good_run(["python", os.fsdecode(b"a\xff.py"), os.fsdecode(b"--x=\xff")], root, is_probed=False)
    assert see(report, root) is None
    assert see(report, root).times == 1
    assert memory.why_unusable() is None
    assert len(memory.events_of(root)) == 2
    assert memory.forget(root) == 2


def test_what_cannot_be_read_costs_a_line(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the project's files hold, a good run stays one: what went wrong is told once."""

    def fail(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("explainer.probe.circumstances.read_circumstances", fail)
    memory.note_good_run(["python", "train.py"], root, is_probed=False)
    assert "what the run was made with cannot be read (RecursionError: too deep)" in memory.why_unusable()
    assert memory.why_unusable() is None


def test_a_failure_of_another_project(report, root: str, tmp_path: pathlib.Path) -> None:
    """The same failure in a copy of the project elsewhere was seen before; a benign notice never was."""
    see(report, root)
    (tmp_path / "copy").mkdir()
    assert see(report, str(tmp_path / "copy")).times == 1
    assert len(memory.events_of(str(tmp_path / "copy"))) == 1
    notice = replace(report, fingerprint=None)
    assert memory.recall_failures([notice], root, way="run") == ([notice], [])
