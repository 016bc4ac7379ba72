"""Takes a program through `gradfix run --fix` in a scratch folder, and compares what comes out with the program as meant."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests import forked
from tests.conftest import PATH
from tests.knowledge.reproducer import ENVIRONMENT, Shape

TIMEOUT = 300
SAME, EQUAL, OTHER = "same bytes", "equal gradients", "other gradients"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """How a repair ended: gradfix's answer, how the program now compares with the one meant ("" unless verified), seconds."""

    answer: dict[str, Any]
    likeness: str
    why: str
    seconds: float

    @property
    def status(self) -> str:
        """`verified`, `unfixed` and so on; `no answer` where there is none."""
        return str(self.answer.get("status", "no answer"))

    @property
    def cause(self) -> str:
        """The first cause named."""
        found = self.answer.get("report", {}).get("findings", [])
        return str(found[0]["cause"]) if found else "nothing"


def run_gradfix(folder: pathlib.Path, *options: str, script: Sequence[str] = ("train.py",)) -> dict[str, Any]:
    """What `gradfix run --format json` answers of a script in `folder`; {} where it did not end or answered nothing."""
    command = [sys.executable, "-m", "gradfix", "run", *options, "--format", "json", "--", forked.python(), *script]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL
        )  # fmt: skip
        return dict(json.loads(done.stdout))
    except (subprocess.TimeoutExpired, ValueError):
        return {}


def environment(folder: pathlib.Path) -> dict[str, str]:
    """An environment in which this checkout's gradfix runs, and keeps its journal beside the project."""
    state = folder.parent / f"{folder.name}-state"
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": PATH, "GRADFIX_STATE_DIR": str(state)}


def repair_shape(shape: Shape, scratch: pathlib.Path) -> Repaired:
    """Repair `broken.py`, alone in its folder as `train.py`, and compare it with `fixed.py`."""
    folder, meant = scratch / "project", scratch / "meant"
    for one, name in ((folder, "broken.py"), (meant, "fixed.py")):
        one.mkdir(parents=True)
        shutil.copy(shape.folder / name, one / "train.py")
    began = time.monotonic()
    answer = run_gradfix(folder, "--fix", "--unsafe-fixes")
    seconds = time.monotonic() - began
    likeness, why = compare(folder / "train.py", meant / "train.py") if answer.get("status") == "verified" else ("", "")
    return Repaired(answer=answer, likeness=likeness, why=why, seconds=seconds)


def compare(program: pathlib.Path, meant: pathlib.Path) -> tuple[str, str]:
    """Whether two programs are the same bytes, or first step with equal gradients; and why not."""
    if program.read_bytes() == meant.read_bytes():
        return SAME, ""
    got, wanted = first_gradients(program), first_gradients(meant)
    if isinstance(got, str) or isinstance(wanted, str):
        return OTHER, got if isinstance(got, str) else f"as meant: {wanted}"
    why = difference(got, wanted)
    return (OTHER, why) if why else (EQUAL, "")


def first_gradients(program: pathlib.Path, *arguments: str) -> dict[str, Any] | str:
    """The gradients of the first step by name, or why there are none."""
    import numpy

    out = program.parent.parent / f"{program.parent.name}.npz"
    command = [forked.python(), str(pathlib.Path(__file__).with_name("first_gradients.py")), str(out), program.name]
    try:
        done = subprocess.run(
            [*command, *arguments], cwd=program.parent, env=environment(program.parent), capture_output=True, text=True, timeout=TIMEOUT
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "still running"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:120]
    if not out.exists():
        return "it ended without a word"
    with numpy.load(out) as saved:
        return {name: saved[name] for name in saved.files}


def difference(got: dict[str, Any], wanted: dict[str, Any], tolerance: float = 1e-4) -> str:
    """The first difference between two sets of gradients; "" where there is none."""
    import numpy

    if set(got) != set(wanted):
        return f"other parameters: {', '.join(sorted(set(got) ^ set(wanted))[:3])}"
    if not any(one.size for one in wanted.values()):
        return "no gradient was seen"
    largest = max(float(numpy.abs(one).max()) for one in wanted.values() if one.size)
    for name, want in wanted.items():
        if got[name].shape != want.shape:
            return f"{name}: {got[name].shape} for {want.shape}"
        # a gradient that is zero but for rounding is measured against the largest one
        if want.size and not numpy.abs(got[name] - want).max() <= tolerance * max(
            numpy.abs(want).max(), 1e-2 * largest
        ):
            return f"{name} differs"
    return ""
