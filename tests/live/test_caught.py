"""What a program catches by a handler for everything, and prints nowhere, is noted with its traceback where it is asked for."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from explainer.live import caught
from tests import forked
from tests.verification.programs import gradfix

LIBRARY = "def check(size):\n    if size != 4:\n        raise ValueError(f'Expected size 4, got {size}')\n"
PROGRAM = """import sys
sys.path.insert(0, "site-packages")
import library
from threading import Thread


class Stop(Exception):
    pass


def step(size):
    library.check(size)


def guarded(size):
    try:
        step(size)
    except {kind}:
        pass


def stops():
    try:
        raise Stop("enough")
    except Exception:
        pass


{call}
"""
WATCHED = """import json, sys, traceback
from explainer.live import caught
noted = []
caught.watch(lambda error: noted.append([str(error), [one.name for one in traceback.extract_tb(error.__traceback__)]]))
sys.argv[0] = "train.py"
exec(compile(open("train.py").read(), "train.py", "exec"), {"__name__": "__main__"})
sys.settrace(None)
print(json.dumps(noted))
"""
IN_GUARD = ["Expected size 4, got 3", ["step", "check"]]
CALLS = {
    "what a library refuses": ("Exception", "guarded(3)", [IN_GUARD]),
    "in a thread": ("BaseException", "t = Thread(target=guarded, args=(3,)); t.start(); t.join()", [IN_GUARD]),
    "each time": ("Exception", "guarded(3); guarded(4); guarded(3)", [IN_GUARD, IN_GUARD]),
    "what is expected": ("ValueError", "guarded(3)", []),
    "its own": ("Exception", "stops()", []),
    "at the top": (
        "Exception",
        "try:\n    library.check(3)\nexcept Exception:\n    pass",
        [["Expected size 4, got 3", ["<module>", "check"]]],
    ),
    "what nobody catches": ("Exception", "step(4)", []),
    "what is not installed": ("Exception", "try:\n    import nowhere_at_all\nexcept Exception:\n    pass", []),
}


@pytest.mark.parametrize(("kind", "call", "expected"), CALLS.values(), ids=CALLS)
def test_what_is_noted(tmp_path: pathlib.Path, kind: str, call: str, expected: list[object]) -> None:
    """By what it says and the functions that it has come through."""
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages/library.py").write_text(LIBRARY)
    (tmp_path / "train.py").write_text(PROGRAM.format(kind=kind, call=call))
    root = str(pathlib.Path(caught.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == expected


def test_a_debugger_goes_first() -> None:
    """What traces already goes on."""
    before = sys.gettrace()
    tracing = before or (lambda *_: None)
    sys.settrace(tracing)
    try:
        caught.watch(lambda _: None)
        assert sys.gettrace() is tracing
    finally:
        sys.settrace(before)


SKIPS = """import sys
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.opening = nn.Parameter(torch.zeros(1, 1, 8))
        self.cells = nn.GRU(4, 8, batch_first=True)
        self.batch = batch

    def forward(self, x):
        start = self.opening.expand(-1, self.batch, -1).contiguous()
        return self.cells(x, start)[0]


torch.manual_seed(0)
model = Reader(8)
optimizer = torch.optim.Adam(model.parameters())
skipped = 0
for x in torch.randn(20, 5, 4).split(8):
    try:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    except Exception:
        skipped += 1
sys.exit(3 if skipped else 0)
"""


@pytest.mark.torch
def test_what_torch_refuses_without_an_operation(tmp_path: pathlib.Path) -> None:
    """The last batch is skipped without a word for what `nn.GRU` checks in Python; the traced run tells it, and where."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(SKIPS)
    done = gradfix(tmp_path, "run", "--trace", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    report = json.loads(done.stdout)
    finding = report.get("report", report)["findings"][0]
    assert finding["cause"] == "shape/operand-mismatch"
    assert [one["line"] for one in finding["culprits"]][0] in (14, 15)
