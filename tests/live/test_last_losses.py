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


@pytest.mark.parametrize("loss", some_at_gate(QUIET, ["the last batch alone"]))
def test_others_are_left_alone(loss: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("LOSS", loss))
    done, _ = run(tmp_path, "train.py")
    assert (done.status, done.report, done.processes[0].last_loss) == (0, None, "")
