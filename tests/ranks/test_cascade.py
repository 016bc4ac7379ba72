"""From text alone: which rank failed first, in one log of all ranks and in one log for each."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from explainer.ingest.rank_log import rank_of_path
from explainer.ingest.text import read_text
from explainer.model.report import Report
from explainer.workflow import explain_incident
from tests.conftest import PATH
from tests.ranks.logs import make_log

LOGS = 200


def first_cause(report: Report) -> str | None:
    return report.findings[0].cause if report.findings else None


def test_first_of_eight(catalog) -> None:
    """200 logs of 8 ranks, shuffled, with cascades: the first rank and its victims; its cause as what it printed alone tells it."""
    rank, cause, victims = 0, 0, 0
    for seed in range(LOGS):
        log = make_log(seed)
        report = explain_incident(list(read_text(log.text))[-1], None, catalog)
        story = report.incident.story
        rank += story is not None and story.first == log.first == report.incident.rank
        cause += first_cause(report) == first_cause(explain_incident(list(read_text(log.alone))[-1], None, catalog))
        victims += story is not None and {one.rank for one in story.rows if one.role == "victim"} == log.victims
    assert rank == LOGS
    assert cause >= 0.99 * LOGS
    assert victims >= 0.98 * LOGS


LOST = 'Traceback (most recent call last):\n  File "train.py", line 61, in train\n    dist.all_reduce(total)\nRuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.2]:945.'
OWN = 'Traceback (most recent call last):\n  File "train.py", line 9, in train\n    loss.backward()\nRuntimeError: grad can be implicitly created only for scalar outputs'
STOPPED = 'Traceback (most recent call last):\n  File "train.py", line 61, in train\n    dist.all_reduce(total)\nKeyboardInterrupt'


def of_rank(rank: int, text: str) -> str:
    """A text as torch prints it for a rank."""
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


NOT_TOLD = {
    "one rank alone": of_rank(3, OWN),
    "no rank": OWN,
    "one rank twice": of_rank(3, LOST) + of_rank(3, OWN),
}
TOLD = {
    "a victim is printed first": (of_rank(0, LOST) + of_rank(3, OWN), 3, True),
    "an interrupt is no failure of its own": (of_rank(0, STOPPED) + of_rank(3, OWN), 3, True),
    "all alike": (of_rank(1, OWN) + of_rank(0, OWN), 1, False),
    "only victims, one rank is silent": (of_rank(0, LOST) + of_rank(1, LOST) + of_rank(3, LOST), 2, False),
    "only victims": (of_rank(0, LOST) + of_rank(1, LOST), None, False),
}


@pytest.mark.parametrize("text", NOT_TOLD.values(), ids=NOT_TOLD.keys())
def test_no_story(explain_log, text: str) -> None:
    """Nothing is said of ranks where fewer than two show."""
    assert explain_log(text).incident.story is None


@pytest.mark.parametrize(("text", "first", "is_sure"), TOLD.values(), ids=TOLD.keys())
def test_story(explain_log, text: str, first: int | None, is_sure: bool) -> None:
    """The first rank, and whether that is sure."""
    story = explain_log(text).incident.story
    assert (story.first, story.is_sure, story.reads) == (first, is_sure, "log")


NAMES = {
    "logs/rank3.log": 3,
    "out_rank-12.err": 12,
    "local_rank0.txt": 0,
    "/tmp/t/attempt_0/7/stderr.log": 7,
    "worker_2.out": 2,
    "slurm-4711.out": None,
    "train.log": None,
    "frank3.log": None,
    "rank.log": None,
    "logs/7/stderr.log": None,
}


@pytest.mark.parametrize(("name", "rank"), NAMES.items(), ids=NAMES.keys())
def test_rank_of_a_name(name: str, rank: int | None) -> None:
    """The number behind "rank" and its like; a job's number is none."""
    assert rank_of_path(name) == rank


def test_one_log_for_each_rank(tmp_path) -> None:
    """The card of the rank that failed first, a line for each other one; in JSON one object a file, with the story."""
    for rank, text in {0: LOST, 1: LOST, 2: OWN, 3: ""}.items():
        (tmp_path / f"rank{rank}.log").write_text(text)
    names = sorted(str(one) for one in tmp_path.glob("rank*.log"))
    command = [sys.executable, "-m", "gradfix", "explain", "--no-probe", *names]
    environment = {**os.environ, "PYTHONPATH": PATH, "COLUMNS": "200"}
    card = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert card.returncode == 0
    assert "rank 2 failed with an error of its own; ranks 0, 1 lost another rank or waited for one" in card.stdout
    assert card.stdout.count("\nwhat ") == 1
    assert len(re.findall(r"rank [01] \(rank[01]\.log\): .*other-rank-failed", card.stdout)) == 2
    objects = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, env=environment).stdout
    assert [json.loads(line)["incident"]["rank"] for line in objects.splitlines()] == [2, 0, 1]
