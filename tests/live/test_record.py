"""What a process notes of its failures, and what it must not keep."""

from __future__ import annotations

import gc
import pathlib
import weakref

from explainer.live.record import Recorder


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
