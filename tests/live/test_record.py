"""What a process notes of its failures, and what it must not keep."""

from __future__ import annotations

import gc
import pathlib
import weakref

import pytest

from explainer.live import crash
from explainer.live.record import Recorder
from explainer.verification.live_report import report_of


class Large:
    """Stands for a tensor in a frame."""


def fail(number: int) -> weakref.ref:
    """Raise and catch one failure while a large object is in the frame; give a weak reference to it."""
    held = Large()
    try:
        raise RuntimeError(f"failure {number}")
    except RuntimeError as error:
        RECORDER.note(error, "printed")
        RECORDER.note(error, "uncaught")
    return weakref.ref(held)


RECORDER = Recorder({"folder": "/nowhere", "mode": "verify"})


def test_each_failure_is_noted_once_and_nothing_is_kept() -> None:
    """A loop that catches one failure after another has each noted, and its frames are free at once."""
    references = [fail(number) for number in range(5)]
    gc.collect()
    assert [one["message"] for one in RECORDER.failures] == [f"failure {number}" for number in range(5)]
    assert [one() for one in references] == [None] * 5


def test_a_folder_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    """The program ends as it would; the report is missing, and that is all."""
    recorder = Recorder({"folder": str(tmp_path / "gone"), "mode": "run"})
    recorder.parts["steps"] = {"0 SGD": 1}
    recorder.write()
    assert list(tmp_path.iterdir()) == []


def test_what_ends_a_program_is_looked_at_behind_many_that_it_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that it catches only the first are: a loop that catches one after another stays quick."""
    recorder, asked = Recorder({"folder": "/nowhere", "mode": "run"}), []
    monkeypatch.setattr(crash, "look", lambda error, *_: asked.append(str(error)) or {"of": str(error)})
    for number in range(6):
        recorder.note(RuntimeError(f"caught {number}"), "raised")
    last = RuntimeError("the end")
    recorder.note(last, "raised")
    recorder.note(last, "uncaught")
    assert asked == ["caught 0", "caught 1", "caught 2", "the end"]
    assert recorder.failures[-1]["seen"] == {"of": "the end"}


def test_one_that_came_again_is_known_by_the_first_that_was_looked_at() -> None:
    """Of the same traceback; another one says nothing."""
    noted = {"type": "RuntimeError", "message": "it", "where": "raised", "steps": {}, "text": "at line 3"}
    seen = {"grad_enabled": True}
    failures = [{**noted, "seen": seen}, {**noted, "seen": {}}, {**noted, "seen": {}, "text": "at line 7"}]
    first, again, other = report_of({"pid": 1, "failures": failures}).failures
    assert first.facts
    assert again.facts == first.facts
    assert other.facts == ()
