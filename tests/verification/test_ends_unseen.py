"""A training that an exception ended while the command ended well: in a thread, in a process of its own, or caught and told."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests import forked
from tests.gate import some_at_gate
from tests.verification.programs import gradfix

pytestmark = pytest.mark.torch
FIT = """import torch

torch.manual_seed(0)


def fit(steps=6, is_wrong=True):
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        out = net(torch.randn(8, 4)).sigmoid()
        if is_wrong:
            out.mul_(2)
        loss = (out - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
THREAD = (
    FIT
    + """

import threading

thread = threading.Thread(target=fit)
thread.start()
thread.join()
print("done")
"""
)
CHILD = """import subprocess
import sys

for seed in (1, 2):
    print(seed, subprocess.run([sys.executable, "fit.py", str(seed)]).returncode)
"""
LOGGED = (
    FIT
    + """

import logging

try:
    fit()
except Exception:
    logging.exception("training failed")
"""
)
ENDED = {"a thread": (THREAD, ""), "processes": (CHILD, FIT + "\n\nfit()\n"), "a log": (LOGGED, "")}
WELL = {
    "a process that was begun anew": (CHILD, FIT + "\n\nimport sys\n\nfit(is_wrong=sys.argv[1] == '1')\n"),
    "steps came after it": (LOGGED + "fit(is_wrong=False)\n", ""),
    "a plot behind the training": (LOGGED.replace("    fit()", "    fit(is_wrong=False)\n    {}['plot']"), ""),
}


def run(folder: pathlib.Path, programs: tuple[str, str], *words: str) -> dict:
    """What a command says of a program that may start another one."""
    pytest.importorskip("torch")
    (folder / "train.py").write_text(programs[0])
    (folder / "fit.py").write_text(programs[1])
    return json.loads(gradfix(folder, *words, "--format", "json", "--", forked.python(), "train.py").stdout)


@pytest.mark.slow
@pytest.mark.parametrize("programs", ENDED.values(), ids=ENDED)
def test_it_is_told_and_mended(programs: tuple[str, str], tmp_path: pathlib.Path) -> None:
    """As the same failure of the command itself: with its cause, and a fix that is proved by a run without the exception."""
    told = run(tmp_path, programs, "run", "--fix")
    assert told["report"]["findings"][0]["cause"] == "inplace/op-on-saved-tensor"
    assert told["status"] == "verified"
    assert "out = out.mul(2)" in (tmp_path / ("fit.py" if programs[1] else "train.py")).read_text()


@pytest.mark.parametrize("programs", some_at_gate({name: (one,) for name, one in ENDED.items()}, ["a log"]))
def test_it_is_not_green(programs: tuple[str, str], tmp_path: pathlib.Path) -> None:
    told = run(tmp_path, programs, "verify")
    assert (told["verdict"], "RuntimeError: one of the variables" in told["reasons"][0]) == ("red", True)


@pytest.mark.parametrize(
    "programs", some_at_gate({name: (one,) for name, one in WELL.items()}, ["steps came after it"])
)
def test_what_went_on_is_left_alone(programs: tuple[str, str], tmp_path: pathlib.Path) -> None:
    """What was begun anew, and what failed behind the training."""
    told = run(tmp_path, programs, "run", "--no-probe")
    assert (told["status"], (told["report"] or {}).get("findings", [])) == ("passed", [])
