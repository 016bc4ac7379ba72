"""Averages of states that hold integers."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import mended, run
from tests.fix.rewriting import changed_lines

HEAD = """import torch
from torch import nn
net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
kept = {name: value.clone() for name, value in net.state_dict().items()}
net(torch.randn(4, 2))
"""
LOOPS = {
    "by name": (
        "for name, value in net.state_dict().items():\n    kept[name].mul_(0.9).add_(value, alpha=0.1)\n",
        "kept[name].copy_(value)",
    ),
    "side by side": (
        "for a, b in zip(kept.values(), net.state_dict().values()):\n    a.mul_(0.9).add_(b, alpha=0.1)\n",
        "a.copy_(b)",
    ),
    "by a name of the state": (
        "state = net.state_dict()\nfor name, value in state.items():\n    kept[name].mul_(0.9).add_(value, alpha=0.1)\n",
        "kept[name].copy_(value)",
    ),
    "lerp": (
        "for name, value in net.state_dict().items():\n    kept[name].lerp_(value, 0.1)\n",
        "kept[name].copy_(value)",
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize(("loop", "copied"), LOOPS.values(), ids=LOOPS)
def test_integers_are_copied(tmp_path: pathlib.Path, loop: str, copied: str) -> None:
    """The floats are averaged as before, and the count of batches is the last one."""
    torch = pytest.importorskip("torch")
    after = mended("average_of_floats", HEAD + loop, tmp_path)
    value = copied[copied.rindex("(") + 1 : -1]
    assert changed_lines(HEAD + loop, after) == [f"if not {value}.is_floating_point():", copied, "continue"]
    space = run(after, tmp_path / "after.py")
    state = space["net"].state_dict()
    assert int(space["kept"]["1.num_batches_tracked"]) == 1
    assert torch.allclose(space["kept"]["1.running_mean"], 0.1 * state["1.running_mean"])


@pytest.mark.torch
def test_another_dtype_stays(tmp_path: pathlib.Path) -> None:
    """Where the value is no integer, its loop is not what is wrong."""
    pytest.importorskip("torch")
    source = HEAD.replace("value.clone()", "value.long()") + LOOPS["by name"][0]
    assert mended("average_of_floats", source, tmp_path) == source


@pytest.mark.torch
def test_a_sum_of_data_stays(tmp_path: pathlib.Path) -> None:
    """A loop over rows of integers averages what is meant to be averaged: a copy would be another number."""
    pytest.importorskip("torch")
    source = "import torch\nmean = torch.zeros(2, dtype=torch.long)\nfor row in torch.ones(3, 2).long():\n    mean.mul_(0.9).add_(row, alpha=0.1)\n"
    assert mended("average_of_floats", source, tmp_path) == source
