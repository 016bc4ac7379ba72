"""Weights that follow other weights do so without a graph."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import copy

import torch
from torch import nn

torch.manual_seed(0)
fast = nn.Linear(3, 3)
slow = copy.deepcopy(fast).requires_grad_(False)
opt = torch.optim.SGD(fast.parameters(), 0.1)


def follow(slow, fast, m=0.9):
    for p, q in zip(slow.parameters(), fast.parameters()):
        p.mul_(m).add_((1 - m) * q)


for _ in range(3):
    x = torch.randn(4, 3)
    loss = (fast(x) - slow(x)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    follow(slow, fast)
"""
RIGHT = {
    "decorated": SOURCE.replace("def follow", "@torch.no_grad()\ndef follow"),
    "of the values": SOURCE.replace("p.mul_(m).add_((1 - m) * q)", "p.data.mul_(m).add_((1 - m) * q.data)"),
    "nothing is written": SOURCE.replace("p.mul_(m).add_((1 - m) * q)", "print(p, q)"),
    "no networks": SOURCE.replace("slow.parameters(), fast.parameters()", "slow, fast"),
}


@pytest.mark.torch
def test_the_average_has_no_graph(tmp_path: pathlib.Path) -> None:
    """The program trains, and the slow weights stay without a graph."""
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="second time"):
        exec(SOURCE, {})
    after = rewritten(tmp_path, "follow_without_grad", SOURCE, "loss.backward")
    assert changed_lines(SOURCE, after) == [
        "with torch.no_grad():", "for p, q in zip(slow.parameters(), fast.parameters()):", "p.mul_(m).add_((1 - m) * q)"
    ]  # fmt: skip
    done: dict = {}
    exec(after, done)
    assert not done["slow"].weight.requires_grad
    assert torch.isfinite(done["loss"])


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_has_no_graph_stays(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "follow_without_grad", source, "loss.backward") == source
