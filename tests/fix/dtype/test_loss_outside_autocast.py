"""A loss on probabilities is computed in float32, behind what autocast may compute."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

REFUSED = "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast."
HEAD = """import torch
import torch.nn.functional as F
from torch import nn

criterion = nn.BCELoss()
for x, y in loader:
    with torch.autocast("cuda", dtype=torch.float16):
"""
OUTSIDE = 'with torch.autocast("cuda", enabled=False):'


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["loss = criterion(net(x), y)"], ["predicted = net(x)", OUTSIDE, "    loss = criterion(predicted.float(), y)"]),
        (["p = net(x)", "loss = F.binary_cross_entropy(p, y)"], [OUTSIDE, "    loss = F.binary_cross_entropy(p.float(), y)"]),
        (["loss = F.binary_cross_entropy_with_logits(net(x), y)"], None),
    ],
    ids=["of a call", "of a name", "of scores"],
)  # fmt: skip
def test_a_loss_on_probabilities(tmp_path: pathlib.Path, lines: list[str], wanted: list[str] | None) -> None:
    source = HEAD + "".join(f"        {line}\n" for line in lines)
    after = rewritten(tmp_path, "loss_outside_autocast", source, "loss =", message=REFUSED)
    put_in = [line[1:].removeprefix(" " * 8) for line in diff_lines(source, after) if line.startswith("+")]
    assert put_in == (wanted or [])


def test_another_failure(tmp_path: pathlib.Path) -> None:
    source = HEAD + "        loss = criterion(net(x), y)\n"
    assert rewritten(tmp_path, "loss_outside_autocast", source, "loss =") == source
