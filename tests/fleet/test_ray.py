"""The Ray engine, on a real Ray of this machine."""

from __future__ import annotations

import os
import pathlib
import signal

import pytest

from explainer.fleet.row import KILLED
from tests.fleet.conftest import COUNT
from tests.fleet.killing import readers_killed

pytest.importorskip("ray.data")


@pytest.fixture(scope="module")
def ray():
    """One Ray for all tests."""
    import logging

    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    yield ray
    ray.shutdown()


def readers() -> list[int]:
    """The processes of this Ray that read logs: descendants of ours, by name."""
    found, parents = [], {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = pathlib.Path(f"/proc/{pid}/stat").read_text()
            parents[int(pid)] = int(status.rpartition(")")[2].split()[1])
            if b"MapBatches" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
        except OSError:
            continue
    return [pid for pid in found if _descends(pid, parents)]


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = parents.get(pid, 0)
    return False


def test_the_same_rows_also_when_a_process_is_killed(ray, logs: pathlib.Path, expected, run_triage) -> None:
    """Ray gives the rows of the local engine in their order, although a reader is killed on the way."""
    killed: list[int] = []

    def kill(done: int) -> None:
        if done >= COUNT // 4 and not killed:
            for pid in readers()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    outcome, rows, read = run_triage(logs, engine="ray", on_advance=kill)
    assert killed
    assert rows == expected
    assert (outcome.done, read) == (COUNT, COUNT)


def test_an_object_that_kills_has_a_row(ray, logs: pathlib.Path, expected, run_triage, tmp_path: pathlib.Path) -> None:
    """What kills its reader again and again gets a row that says so, and takes no other of its batch with it."""
    pipe = tmp_path / "poison.log"
    os.mkfifo(pipe)
    with readers_killed(pipe) as killed:
        _, rows, _ = run_triage(pipe, logs / "job-00000", logs / "job-00001", engine="ray")
    (row,) = [row for row in rows if row.file == str(pipe)]
    assert len(killed) >= 2
    assert (row.status, row.detail) == (KILLED, "the process that read it died, also at a second try")
    assert [row for row in rows if row.file != str(pipe)] == expected[:8]
