"""A warning about shapes that a criterion module raises names no line of the program: a trace finds the call."""

from __future__ import annotations

import pathlib

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.model.trace import CROSSED
from explainer.run import Job, sharpen
from tests import forked
from tests.live.running import run

PROGRAM = """import torch
import torch.nn.functional as F

KINDS = {"mse": torch.nn.MSELoss, "huber": torch.nn.SmoothL1Loss}


class Agent:
    def __init__(self, kind):
        self.net = torch.nn.Linear(4, 3)
        self.criterion = KINDS[kind]()

    def learn(self, states, picked, wanted):
        q = self.net(states).gather(1, picked.unsqueeze(1))
        other = self.criterion(self.net(states).mean(1), wanted)
        return CALL + other


torch.manual_seed(0)
agent = Agent("huber")
opt = torch.optim.SGD(agent.net.parameters(), lr=0.01)
for step in range(3):
    loss = agent.learn(torch.randn(8, 4), torch.randint(3, (8,)), torch.randn(8))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def traced(folder: pathlib.Path, source: str) -> tuple[list[str], list[int]]:
    """What the user is told that is waited for, and the lines that a trace adds."""
    (folder / "train.py").write_text(source)
    done, _ = run(folder, "train.py")
    told: list[str] = []
    report = sharpen(
        Job(command=(forked.python(), "train.py"), root=str(folder), catalog=load_catalog()), done, told.append
    ).report
    assert report is not None
    assert report.findings[0].cause == "shape/batch-mismatch"
    return told, [one.line for one in report.incident.traced if one.kind == CROSSED]


@pytest.mark.torch
def test_the_call_is_found(tmp_path: pathlib.Path) -> None:
    """The one of two calls of a criterion, chosen by a word, whose shapes differ."""
    told, lines = traced(tmp_path, PROGRAM.replace("CALL", "self.criterion(q, wanted)"))
    assert told
    assert lines == [15]


@pytest.mark.torch
@pytest.mark.slow
def test_a_line_that_is_named_is_not_traced(tmp_path: pathlib.Path) -> None:
    """A functional loss warns at its caller's line."""
    assert traced(tmp_path, PROGRAM.replace("CALL", "F.mse_loss(q, wanted)")) == ([], [])


@pytest.mark.torch
@pytest.mark.slow
def test_what_no_gradient_sees_is_left_open(tmp_path: pathlib.Path) -> None:
    """A comparison for a log, with grad mode off: the training line is not blamed for it."""
    source = PROGRAM.replace("CALL", "F.mse_loss(q.squeeze(1), wanted)").replace(
        "    opt.step()",
        "    opt.step()\n    with torch.no_grad():\n        print(agent.criterion(torch.ones(8, 1), torch.zeros(8)))",
    )
    told, lines = traced(tmp_path, source)
    assert told
    assert lines == []
