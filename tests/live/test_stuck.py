"""Weights in half precision that steps do not move: no error, and nothing is trained."""

from __future__ import annotations

import pathlib

import pytest

from tests.live.running import run

pytestmark = pytest.mark.torch

PROGRAM = """import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2)).to(DTYPE)
optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
x, y = torch.randn(32, 8).to(DTYPE), torch.randint(0, 2, (32,))
for _ in range(12):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x).float(), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("dtype", "rate", "is_stuck"),
    [("torch.bfloat16", "1e-5", True), ("torch.bfloat16", "0.1", False), ("torch.float32", "1e-5", False), ("torch.bfloat16", "0.0", False)],
)  # fmt: skip
def test_steps_that_round_away(tmp_path: pathlib.Path, dtype: str, rate: str, *, is_stuck: bool) -> None:
    """Only where the weights cannot hold such steps: a rate of 0 is the author's, float32 moves."""
    (tmp_path / "train.py").write_text(PROGRAM.replace("DTYPE", dtype).replace("RATE", rate))
    done, _ = run(tmp_path, "train.py")
    assert done.status == 0
    assert (done.report is not None) == is_stuck
    if done.report is not None:
        assert done.report.findings[0].cause == "nan/low-precision-overflow"
        assert [one.steps for process in done.processes for one in process.stuck] == [12]
