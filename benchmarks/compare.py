"""gradfix beside anomaly mode, friendly-traceback, TorchFix and the message alone: each cell is a command that is run here.

    python -m venv peers && peers/bin/pip install friendly-traceback torchfix
    python benchmarks/compare.py --peers peers [--every 2] > benchmarks/results/compare.md

One program of each cause that has an edit, as the rule base holds it, without its own anomaly mode; healthy programs; one
with a deprecated call; one that fails in plain Python. A line is named where the output holds it with the file's name.
Needs torch, and on friendly-traceback's side a venv of the same Python.
"""

from __future__ import annotations

import argparse
import difflib
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tests.conftest import ROOT
from tests.knowledge.reproducer import Shape
from tests.knowledge.test_fixes import BY_HAND, EDITED

FAMILIES = ("inplace", "no-graph", "nan", "backward", "optimizer", "precision")
HEALTHY = ("plain", "guarded_gradients", "gan", "padded_start", "zero_initialised", "two_optimizers")
ANOMALY = (
    "import runpy, torch; torch.autograd.set_detect_anomaly(True); runpy.run_path('train.py', run_name='__main__')"
)
DEPRECATED = "import torch\n\n\ndef unused(x):\n    return torch.symeig(x)\n"
PLAIN = "rates = {'adam': 1e-3}\nprint(rates['sgd'])\n"
EXPLAINED = r"[Aa] `KeyError`|key .* is not|is not a key|not found as a key"
AT_WORK = ("Anomaly Detection has been enabled", "Finished checking", "gradfix: tracing:", "the input is empty")
_LINE = re.compile(r"train\.py(?:\", line |:)(\d+)")
_MODE = re.compile(r"^torch\.autograd\.set_detect_anomaly\(True\)$", re.M)


@dataclass(frozen=True)
class Tool:
    """A way to look at a program: its name, the command as a reader types it, and as it is run here."""

    name: str
    shown: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


def tools(peers: pathlib.Path) -> list[Tool]:
    (packages,) = (peers / "lib").glob("python3*/site-packages")
    python, own = sys.executable, {"PYTHONPATH": str(ROOT)}
    friendly = {"PYTHONPATH": str(packages)}
    return [
        Tool("the message alone", "python train.py", (python, "train.py")),
        Tool("anomaly mode", "set_detect_anomaly(True), then python train.py", (python, "-c", ANOMALY)),
        Tool("friendly-traceback", "python -m friendly_traceback train.py",
             (python, "-m", "friendly_traceback", "--format", "docs", "train.py"), friendly),
        Tool("TorchFix", "torchfix --select ALL train.py", (str(peers / "bin" / "torchfix"), "--select", "ALL", "train.py")),
        Tool("gradfix explain", "python train.py 2>&1 | gradfix explain",
             ("bash", "-c", f"{python} train.py 2>&1 | {python} -m gradfix explain --no-probe --no-passthrough"), own),
        Tool("gradfix run --trace", "gradfix run --trace -- python train.py",
             (python, "-m", "gradfix", "run", "--no-probe", "--trace", "--", python, "train.py"), own),
    ]  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """What a command said: its exit status, its output without the program's own, the CPU seconds."""

    status: int
    output: str
    seconds: float


def look(tool: Tool, text: str, folder: pathlib.Path) -> Seen:
    """Run a tool on a program that lies alone in `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "train.py").write_text(text)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "NO_COLOR": "1", **tool.environment}
    before = os.times()
    done = subprocess.run(
        tool.command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )  # fmt: skip
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return Seen(done.returncode, done.stdout + done.stderr, seconds)


def guilty(broken: str, fixed: str) -> set[int]:
    """The lines that the fix changes; where it only adds, those on either side."""
    found: set[int] = set()
    matcher = difflib.SequenceMatcher(None, broken.splitlines(), fixed.splitlines(), autojunk=False)
    for kind, start, end, *_ in matcher.get_opcodes():
        if kind != "equal":
            found |= set(range(start + 1, end + 1)) if end > start else {start, start + 1}
    return found


def has_edit(tool: Tool, seen: Seen) -> bool:
    """Whether a diff of the program is offered."""
    return "+++ " in seen.output or "[*]" in seen.output


def source(shape: Shape) -> str:
    """The program that fails."""
    return (shape.folder / "broken.py").read_text()


def chosen(every: int) -> list[Shape]:
    """One shape of each cause of the families that run on a CPU, that has an edit and needs nothing else."""
    by_cause: dict[str, Shape] = {}
    for shape in EDITED:
        is_here = shape.name.partition("/")[0] in FAMILIES and not shape.missing() and shape.name not in BY_HAND
        if is_here and (shape.folder / "fixed.py").exists() and "detect_anomaly():" not in source(shape):
            by_cause.setdefault(shape.cause, shape)
    return list(by_cause.values())[::every]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument("--every", type=int, default=1, help="only each n-th cause")
    options = parser.parse_args()
    every, folder = tools(options.peers.absolute()), pathlib.Path(tempfile.mkdtemp()) / "project"
    count: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    seconds: dict[str, list[float]] = defaultdict(list)
    for shape in chosen(options.every):
        text, fixed = (_MODE.sub("", one) for one in (source(shape), (shape.folder / "fixed.py").read_text()))
        lines = guilty(text, fixed)
        alone = look(every[0], text, folder)
        kind = "failing" if alone.status else "silent"
        count[kind]["programs"] += 1
        for tool in every:
            seen = alone if tool is every[0] else look(tool, text, folder)
            named = {int(one) for one in _LINE.findall(seen.output)}
            seconds[tool.name].append(seen.seconds)
            count[f"{kind} line"][tool.name] += bool(named & lines)
            count[f"{kind} edit"][tool.name] += has_edit(tool, seen)
            is_noticed = tool is not every[0] and len(_words(seen)) > len(_words(alone))
            count["silent noticed"][tool.name] += kind == "silent" and is_noticed
            print(shape.name, kind, tool.name, sorted(lines), sorted(named & lines), f"{seen.seconds:.1f} s", file=sys.stderr, flush=True)  # fmt: skip
    for name in HEALTHY:
        text = (ROOT / "benchmarks" / "healthy" / f"{name}.py").read_text()
        alone = look(every[0], text, folder)
        for tool in every:
            seen = alone if tool is every[0] else look(tool, text, folder)
            count["healthy"][tool.name] += len(_words(seen)) <= len(_words(alone))
    for row, text, pattern in (("lint", DEPRECATED, "symeig"), ("plain", PLAIN, EXPLAINED)):
        for tool in every:
            seen = look(tool, text, folder)
            count[row][tool.name] = int(bool(re.search(pattern, seen.output)))
    print_table(every, count, seconds)
    return 0


def _words(seen: Seen) -> list[str]:
    """What was said, without the lines by which a tool says that it is at work, or had nothing to read."""
    return [one for one in seen.output.splitlines() if one.strip() and not any(word in one for word in AT_WORK)]


def print_table(every: list[Tool], count: dict[str, dict[str, int]], seconds: dict[str, list[float]]) -> None:
    failing, silent = count["failing"]["programs"], count["silent"]["programs"]
    import torch

    print(f"CPython {platform.python_version()}, torch {torch.__version__}, {', '.join(releases())}; CPU.\n")
    print(f"| | {' | '.join(one.name for one in every)} |\n|{' --- |' * (len(every) + 1)}")
    rows = [
        (f"{failing} failing programs: the line to change is named", "failing line", failing),
        (f"{failing} failing programs: an edit is offered", "failing edit", failing),
        (f"{silent} programs that fail in silence: something is said", "silent noticed", silent),
        (f"{silent} programs that fail in silence: the line to change is named", "silent line", silent),
        (f"{len(HEALTHY)} healthy programs: left alone", "healthy", len(HEALTHY)),
        ("a removed function in a line that never ran is found", "lint", 1),
        ("a `KeyError` of plain Python is explained", "plain", 1),
    ]
    for title, key, total in rows:
        cells = [
            ("yes" if count[key][one.name] else "no") if total == 1 else str(count[key][one.name]) for one in every
        ]
        print(f"| {title} | {' | '.join(cells)} |")
    cells = [f"{statistics.median(seconds[one.name]):.1f} s" for one in every]
    print(f"| CPU time for a program, its own run included | {' | '.join(cells)} |")
    print("\n| column | command |\n| --- | --- |")
    for one in every:
        print(f"| {one.name} | `{one.shown.replace('|', chr(92) + '|')}` |")


def releases() -> list[str]:
    return [f"{name} {version}" for name, version in (("friendly-traceback", "0.7.61"), ("TorchFix", "0.7.0"))]


if __name__ == "__main__":
    sys.exit(main())
