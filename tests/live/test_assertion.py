"""An assertion of the program's own that says nothing of NaN, where the live program held some."""

from __future__ import annotations

import pathlib

import pytest

from tests.live.running import run

pytestmark = pytest.mark.torch

PROGRAM = """import torch


def step(rows, dt=0.25):
    scale = rows.abs().mean().item()
    while scale > 1 or scale != scale:
        dt, scale = dt * 0.2, scale * 0.9
        assert dt > 1e-9, f"underflow in dt {dt}"
    return rows * dt


rows = torch.tensor([[1.0, 2.0], [3.0, VALUE]])
net = torch.nn.Linear(2, 1)
net(step(rows)).sum().backward()
"""


@pytest.mark.parametrize(
    ("value", "cause"), [("float('nan')", "nan/bad-input"), ("1e30", None)], ids=["NaN in the data", "large data"]
)
def test_what_an_assertion_does_not_say(tmp_path: pathlib.Path, value: str, cause: str | None) -> None:
    """The values tell; where they are finite the cause is not known."""
    (tmp_path / "train.py").write_text(PROGRAM.replace("VALUE", value))
    done, _ = run(tmp_path, "train.py")
    assert done.report is not None
    assert [one.cause for one in done.report.findings[:1]] == ([cause] if cause else [])
    assert (done.report.unknown is None) is (cause is not None)
