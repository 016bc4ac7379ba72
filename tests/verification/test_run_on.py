"""A program that has made its steps goes on for a while, where that is asked for: what fails at the end of an epoch is met."""

from __future__ import annotations

import pathlib

import pytest

from explainer.verification.verify import Watch, verify_command
from tests import forked

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

EPOCH = """import sys, time
import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0.0
for _ in range(8):
    loss = net(torch.randn(2, 4)).square().mean(0)
    optimizer.zero_grad()
    loss.mean().backward()
    optimizer.step()
    total = total + loss.detach()
{after}
"""


@pytest.mark.parametrize(
    ("after", "run_on", "verdict", "is_stopped"),
    [
        pytest.param("print(float(total))", 0.0, "green", True, id="not asked to"),
        pytest.param("print(float(total))", 60.0, "red", False, id="fails at its end"),
        pytest.param("sys.exit(3)", 60.0, "red", False, id="exits with a status"),
        pytest.param("print(float(total.mean()))", 60.0, "green", False, id="ends well"),
        pytest.param("time.sleep(100)", 0.2, "green", True, id="is ended by the clock"),
    ],
)
def test_what_follows_the_steps(
    tmp_path: pathlib.Path, after: str, run_on: float, verdict: str, *, is_stopped: bool
) -> None:
    (tmp_path / "train.py").write_text(EPOCH.format(after=after))
    proof = verify_command((forked.python(), "train.py"), str(tmp_path), Watch(run_on=run_on))
    assert (proof.verdict, proof.processes[0].is_stopped) == (verdict, is_stopped), proof.reasons
    assert dict(proof.processes[0].steps)["0 SGD"] == (3 if is_stopped else 8)
