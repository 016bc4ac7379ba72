"""The measures of many logs, at their full size: run by hand, their figures stand in benchmarks/results/triage.md."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT


def benchmark(*words: str) -> str:
    run = subprocess.run([sys.executable, "benchmarks/triage.py", *words], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
def test_a_hundred_thousand_logs() -> None:
    """Runs, kills and resumes give the same rows, and two workers are at least 1.7 times one."""
    told = benchmark("--logs", "100000", "--stream-gb", "0")
    assert told.count("rows equal: True") == 3
    assert float(told.partition(" times one worker")[0].rpartition(" ")[2]) >= 1.7


@pytest.mark.slow
def test_twenty_gigabytes() -> None:
    """A worker that reads 10 GB stays below 500 MB."""
    told = benchmark("--logs", "0", "--stream-gb", "20")
    assert int(told.partition(" MB a worker")[0].rpartition(" ")[2]) < 500
