"""A run that is followed: its steps are told as they are made, and it ends when it is asked to."""

from __future__ import annotations

import os
import pathlib
import sys
import threading
import time

import pytest

from explainer.errors import Stopped
from explainer.model.verification import LiveStep
from explainer.verification.command import run_command
from explainer.verification.family import any_left, descendants
from explainer.verification.stream import StepReader
from explainer.verification.verify import Watch, verify_command
from tests import forked
from tests.verification.programs import LOOP, LOSS

SLEEPER = "import os, subprocess, sys, time\nprint(os.getpid(), flush=True)\nsubprocess.run(['sleep', '60'])\n"


def test_a_line_that_is_not_whole_waits(tmp_path: pathlib.Path) -> None:
    """What a process is still writing is read the next time, once."""
    seen: list[LiveStep] = []
    reader = StepReader(str(tmp_path), seen.append)
    path = tmp_path / "7.steps"
    path.write_text('{"pid": 7, "optimizer": "0 SGD", "step": 1}\n{"pid": 7, "opti')
    reader.read()
    assert [one.step for one in seen] == [1]
    with path.open("a") as file:
        file.write('mizer": "0 SGD", "step": 2, "loss": NaN}\n')
    reader.read()
    reader.read()
    assert [one.step for one in seen] == [1, 2]


def test_stopped_with_all_that_it_started(tmp_path: pathlib.Path) -> None:
    """A command that is not shown ends at once, its children too, when its caller asks for it."""
    (tmp_path / "train.py").write_text(SLEEPER)
    said: list[bytes] = []
    family: dict[int, str] = {}

    def on_wait() -> None:
        if said:
            family.update(descendants(int(said[0])))
        if family:
            raise Stopped("stopped")

    with pytest.raises(Stopped):
        run_command(
            (sys.executable, "train.py"), environment=dict(os.environ), folder=str(tmp_path), is_shown=False,
            on_output=lambda _, data: said.append(data), on_wait=on_wait,
        )  # fmt: skip
    assert family
    deadline = time.monotonic() + 30  # what is killed is gone once the system comes to it
    while any_left(family) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any_left(family)


@pytest.mark.torch
def test_steps_are_told_while_it_runs(tmp_path: pathlib.Path) -> None:
    """Each step of a verification comes with its loss and gradient norm; the verdict is the same as without."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(LOOP.format(before="", loss=LOSS))
    seen: list[LiveStep] = []
    proof = verify_command((forked.python(), "train.py"), str(tmp_path), Watch(steps=4), on_step=seen.append)
    assert proof.verdict == "green"
    rows = proof.processes[0].rows
    assert [(one.step, one.loss, one.norm) for one in seen] == [(row.step + 1, row.loss, row.norm) for row in rows]
    assert all(one.memory for one in seen)


@pytest.mark.torch
def test_a_stopped_verification_leaves_the_project_as_it_was(tmp_path: pathlib.Path) -> None:
    """What the run had written by then is taken back."""
    pytest.importorskip("torch")
    loop = LOOP.format(before="open('made.txt', 'w').write('x')", loss=LOSS).replace("range(20)", "range(10**9)")
    (tmp_path / "train.py").write_text(loop)
    is_stopped = threading.Event()
    watch = Watch(steps=10**6, is_stopped=is_stopped.is_set)
    with pytest.raises(Stopped):
        verify_command((sys.executable, "train.py"), str(tmp_path), watch, on_step=lambda _: is_stopped.set())
    assert [one.name for one in tmp_path.iterdir()] == ["train.py"]
