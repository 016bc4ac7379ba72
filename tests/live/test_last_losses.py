"""A run whose last losses are infinite, with gradients that are finite: no error, and no training that anybody meant."""

from __future__ import annotations

import pathlib

import pytest

from tests.gate import some_at_gate
from tests.live.running import run

pytestmark = pytest.mark.torch
PROGRAM = """import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for step in range(6):
    scale = torch.relu(net(torch.randn(8, 4)))
    loss = LOSS
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
INFINITE = "(scale - scale.log()).mean()"
QUIET = {
    "one odd batch": INFINITE + " if step == 2 else scale.mean()",
    "the last batch alone": INFINITE + " if step == 5 else scale.mean()",
    "finite": "scale.mean()",
}


def test_an_infinite_loss_is_told(tmp_path: pathlib.Path) -> None:
    """With the line that a trace sees."""
    (tmp_path / "train.py").write_text(PROGRAM.replace("LOSS", INFINITE))
    done, _ = run(tmp_path, "train.py")
    assert (done.status, done.processes[0].last_loss, done.processes[0].not_finite) == (0, "inf", ())
    assert done.report.findings[0].cause.startswith("nan/")


LABELS = """import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for step in range(70):
    labels = torch.randint(0, 3, (8,))
    labels[labels == 1] = -100
    if step in (20, 66):
        labels[:] = -100
    loss = nn.functional.cross_entropy(net(torch.randn(8, 4)), labels)
    optimizer.zero_grad()
    loss.backward()
    STEP
"""
COUNTED = {
    "made": ("optimizer.step()", 2),
    "left out": ("if loss.isfinite():\n        optimizer.step()", 0),
}


@pytest.mark.parametrize(("step", "count"), some_at_gate(COUNTED, ["made"]))
def test_a_step_with_a_loss_that_is_nan(step: str, count: int, tmp_path: pathlib.Path) -> None:
    """Its gradient is 0 and every parameter finite: it is told all the same, but where the program made no step with it."""
    (tmp_path / "train.py").write_text(LABELS.replace("STEP", step))
    done, _ = run(tmp_path, "train.py")
    (process,) = done.processes
    assert (done.status, process.nan_losses, process.not_finite) == (0, count, ())
    assert (done.report.findings[0].cause if done.report else None) == ("nan/all-labels-ignored" if count else None)


@pytest.mark.parametrize("loss", some_at_gate(QUIET, ["the last batch alone"]))
def test_others_are_left_alone(loss: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("LOSS", loss))
    done, _ = run(tmp_path, "train.py")
    assert (done.status, done.report, done.processes[0].last_loss) == (0, None, "")
