"""The local engine: the same rows as without it, whatever happens to its processes."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import signal

import pytest

from explainer.errors import CannotStart
from explainer.fleet import pool
from explainer.fleet.row import KILLED
from tests.fleet.conftest import COUNT
from tests.fleet.killing import readers_killed


def kill_one(at: int):
    """Kills one process of the pool when `at` objects are done."""

    def kill(done: int) -> None:
        if done == at:
            os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

    return kill


def test_a_killed_process_costs_nothing(logs: pathlib.Path, expected, run_triage) -> None:
    """A process killed half way is replaced: every row is there, once, in its order."""
    outcome, rows, read = run_triage(logs, on_advance=kill_one(COUNT // 2))
    assert rows == expected
    assert (outcome.done, outcome.total, read) == (COUNT, COUNT, COUNT)


def test_an_object_that_kills_has_a_row(logs: pathlib.Path, expected, run_triage, tmp_path: pathlib.Path) -> None:
    """What kills its reader twice gets a row that says so; no other object is blamed."""
    pipe = tmp_path / "poison.log"
    os.mkfifo(pipe)
    with readers_killed(pipe) as killed:
        _, rows, _ = run_triage(pipe, logs / "job-00000", logs / "job-00001")
    (row,) = [row for row in rows if row.file == str(pipe)]
    assert len(killed) == 2
    assert (row.status, row.detail, row.failure) == (KILLED, "the process that read it died, also at a second try", 0)
    assert [row for row in rows if row.file != str(pipe)] == expected[:8]


def test_a_reader_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, run_triage, tmp_path: pathlib.Path) -> None:
    """An object that never ends is given up on, as one that kills."""
    pipe = tmp_path / "endless.log"
    os.mkfifo(pipe)
    monkeypatch.setattr(pool.Settings.__new__, "__defaults__", (0.3,))
    _, rows, _ = run_triage(pipe, workers=1)
    assert [row.status for row in rows] == [KILLED]


def test_processes_that_cannot_start_are_an_error(monkeypatch: pytest.MonkeyPatch, run_triage, logs) -> None:
    """Where no process comes up, no log is blamed: it is said once."""
    monkeypatch.setattr(pool, "serve", os._exit)
    with pytest.raises(CannotStart, match="end at once"):
        run_triage(logs, workers=1)


def test_no_object_no_process(run_triage, tmp_path: pathlib.Path) -> None:
    """An empty folder is one row, made without reading anything."""
    outcome, rows, _ = run_triage(tmp_path)
    assert [(row.status, row.file) for row in rows] == [("empty", str(tmp_path))]
    assert outcome.summary.is_all_read
