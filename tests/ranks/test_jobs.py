"""Real jobs of four gloo ranks: the one that failed, hung, left or differed is found, wherever its words stand in the output."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from tests.conftest import PATH
from tests.ranks.jobs import run_job, write_job

pytestmark = pytest.mark.torch
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", "launched.py")


@pytest.fixture(autouse=True)
def _torch(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def story_of(done):
    """The story of a run's ranks."""
    assert done.report is not None
    assert done.report.incident.story is not None
    return done.report.incident.story


@pytest.mark.slow
def test_one_of_four_fails(tmp_path: pathlib.Path) -> None:
    """The finding is of the rank that failed, with its live facts; the others are its victims, in the collective where they waited."""
    done, _ = run_job(tmp_path, "forked.py", "fail", "2", "30", report_dir=str(tmp_path / "reports"))
    story = story_of(done)
    assert (story.first, story.is_sure) == (2, True)
    assert story.says == ("rank 2 failed first, after 3 optimizer steps; ranks 0, 1, 3 failed after it, in all_reduce",)
    assert done.report.findings[0].cause.startswith("no-graph/")
    assert done.report.findings[0].culprits[0].file.endswith("train.py")
    (run,) = (tmp_path / "reports").iterdir()
    told = sorted(one.name.split(".")[0] for one in run.glob("rank-*.json"))
    assert told == ["rank-0", "rank-1", "rank-2", "rank-3"]
    assert not list(run.glob("*.part"))
    card = subprocess.run(
        [sys.executable, "-m", "gradfix", "explain", "--no-probe", str(tmp_path / "reports")],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip
    assert card.returncode == 0, card.stderr
    assert "rank 2 failed first" in card.stdout


SILENT = {
    "leave": "rank {odd} had ended without an error",
    "kill": "rank {odd} left no report: killed from outside",
    "crash": "rank {odd} crashed (Segmentation fault)",
    "shape": "rank {odd} called all_reduce of [3] float32 as collective 4",
    "other": "rank {odd} called broadcast of [4] float32 as collective 4",
}


@pytest.mark.slow
@pytest.mark.parametrize("odd", [0, 3])
@pytest.mark.parametrize(("what", "says"), SILENT.items(), ids=SILENT.keys())
def test_one_of_four_says_nothing(tmp_path: pathlib.Path, what: str, says: str, odd: int) -> None:
    """A rank that left, was killed, crashed, or called something else than the others is the first, though only others raised."""
    done, _ = run_job(tmp_path, "forked.py", what, str(odd), "6")
    story = story_of(done)
    assert story.first == odd
    assert story.says[0].startswith(says.format(odd=odd))
    assert done.report.findings[0].cause.startswith("distributed/")
    if what in ("shape", "other"):
        finding = done.report.findings[0]
        assert (finding.cause, finding.confidence) == ("distributed/collective-timeout", "certain")
        assert finding.culprits[0].code == (
            "dist.all_reduce(gradient)" if what == "shape" else "dist.broadcast(gradient, 0)"
        )


@pytest.mark.slow
@pytest.mark.parametrize("launch", [("forked.py",), TORCHRUN], ids=["forked", "torchrun"])
def test_one_of_four_hangs(tmp_path: pathlib.Path, launch: tuple[str, ...]) -> None:
    """The stacks say which ranks wait in which collective and which one is elsewhere; nothing is left running."""
    done, _ = run_job(tmp_path, *launch, "hang", "1", "600", limit=45)
    story = story_of(done)
    assert story.first == 1
    assert story.says[0].startswith("ranks 0, 2, 3 wait in all_reduce; rank 1 is elsewhere, in train.py:")
    finding = done.report.findings[0]
    assert (finding.cause, finding.confidence) == ("distributed/collective-timeout", "certain")
    assert finding.culprits[0].code == "time.sleep(seconds)"
    assert done.status not in (0, None)
    assert subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True).returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize("what", ["fail", "shape"])
def test_under_torchrun(tmp_path: pathlib.Path, what: str) -> None:
    """The launcher ends the ranks as soon as one has failed: what they had to say is in the folder by then."""
    done, _ = run_job(tmp_path, *TORCHRUN, what, "3", "10")
    assert story_of(done).first == 3
    assert story_of(done).is_sure


@pytest.mark.slow
def test_ranks_that_a_watchdog_aborts(tmp_path: pathlib.Path) -> None:
    """They crash in C while they wait; the one that they waited for, and that the launcher then ended, is named."""
    done, _ = run_job(tmp_path, *TORCHRUN, "watchdog", "2", "60")
    story = story_of(done)
    assert (story.first, story.is_sure) == (2, True)
    assert "rank 2 is elsewhere, in train.py:" in story.says[0]
    finding = done.report.findings[0]
    assert finding.cause == "distributed/collective-timeout"
    lines = (tmp_path / "train.py").read_text().splitlines()
    assert lines[finding.culprits[0].line - 1].strip() == "time.sleep(seconds)"


@pytest.mark.slow
def test_two_nodes_share_a_folder(tmp_path: pathlib.Path) -> None:
    """Two `gradfix run` of one job, each with two ranks: rank 0's tells the whole, the other one points at it; then the folder does."""
    write_job(tmp_path)
    environment = {**os.environ, "PYTHONPATH": PATH, "GRADFIX_RUN_ID": "job-1"}
    nodes = [
        subprocess.Popen(
            [sys.executable, "-m", "gradfix", "run", "--no-probe", "--report-dir", "reports", "--", sys.executable,
             "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(node), "--nproc-per-node", "2",
             "--master-addr", "127.0.0.1", "--master-port", "29617", "launched.py", "fail", "3", "60"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path, env=environment,
        )
        for node in range(2)
    ]  # fmt: skip
    told = [one.communicate(timeout=280)[0] for one in nodes]
    assert "\nrank 3 failed first, after 3 optimizer steps" in told[0]
    assert "no-graph/" in told[0]
    assert "gradfix: rank 3 failed first" in told[1].splitlines()[-1]
    assert "no-graph/" not in told[1]
    later = subprocess.run(
        [sys.executable, "-m", "gradfix", "explain", "--no-probe", "--format", "json", "reports"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip
    assert json.loads(later.stdout)["incident"]["story"]["first"] == 3


STUCK = "import time\ndef wait():\n    time.sleep(300)\nwait()\n"


def test_one_process_that_hangs(tmp_path: pathlib.Path) -> None:
    """Without ranks the place of the main thread is told; the program has ended."""
    (tmp_path / "stuck.py").write_text(STUCK)
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", "run", "--no-probe", "--timeout", "2", "--", sys.executable, "stuck.py"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATH, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGTERM
    assert "stuck.py:3 (wait)" in done.stderr
