"""A failure that a fix lays open is traced as the first one was, where no edit for it is known without."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests import forked
from tests.verification.programs import gradfix

pytestmark = pytest.mark.torch
TEACHER = """import copy
import torch
from torch import nn


def follow(pair, decay=0.9):
    for t, s in zip(pair.teacher.parameters(), pair.student.parameters()):
        t.mul_(decay).add_(s, alpha=1 - decay)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
        self.teacher = copy.deepcopy(self.student)

    def forward(self, a, b):
        wanted = self.teacher(b)
        loss = (self.student(a) - wanted).square().mean()
        follow(self)
        return loss


torch.manual_seed(0)
pair = Pair()
optimizer = torch.optim.SGD(pair.student.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(8, 4)
    loss = pair(x + 0.1, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
WRITE = "        t.mul_(decay).add_(s, alpha=1 - decay)\n"
RUN = "        wanted = self.teacher(b)\n"


def under(line: str) -> str:
    return f"        with torch.no_grad():\n    {line}"


def test_the_second_failure_is_traced(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The average under no_grad lets the backward fail: which line wrote what it saved only a trace tells."""
    pytest.importorskip("torch")
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "train.py").write_text(TEACHER)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert told["status"] == "verified", done.stderr
    assert [one["cause"] for one in told["applied"]] == [
        "inplace/leaf-requires-grad",
        "inplace/parameter-stepped-before-backward",
    ]
    assert (tmp_path / "train.py").read_text() == TEACHER.replace(WRITE, under(WRITE)).replace(RUN, under(RUN))
