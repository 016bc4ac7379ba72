"""A view of what was transposed becomes a reshape; beside flattened targets only in their order."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
LOSS = """\
from torch import nn

criterion = nn.CrossEntropyLoss()
for x, y in batches:
    out = net(x)
    {line}
"""
SAME = "loss = criterion(out.view(-1, 5), y.view(-1))"
TURNED = {"out": "[16, 30, 5] float32", "y": "[30, 16] int64"}


def edited(folder: pathlib.Path, line: str, tensors: dict[str, str], source: str = LOSS) -> list[str]:
    """The lines that change where a view was refused."""
    text = source.format(line=line)
    return changed_lines(
        text, rewritten(folder, "reshape_for_view", text, ".view(-1, 5)", message=MESSAGE, tensors=tensors)
    )


def test_targets_of_the_other_order(tmp_path: pathlib.Path) -> None:
    """They are transposed."""
    assert edited(tmp_path, SAME, TURNED) == ["loss = criterion(out.reshape(-1, 5), y.t().reshape(-1))"]


def test_targets_of_the_same_order(tmp_path: pathlib.Path) -> None:
    """They stay."""
    assert edited(tmp_path, SAME, TURNED | {"y": "[16, 30] int64"}) == [
        "loss = criterion(out.reshape(-1, 5), y.reshape(-1))"
    ]


def test_a_name_between(tmp_path: pathlib.Path) -> None:
    """The view is the prediction's, whatever it is called in between."""
    line = "flat = out.view(-1, 5)\n    loss = criterion(flat, y.flatten())"
    assert edited(tmp_path, line, TURNED) == ["flat = out.reshape(-1, 5)", "loss = criterion(flat, y.t().reshape(-1))"]


@pytest.mark.parametrize(
    "tensors",
    [{}, {"out": "[16, 16, 5] float32", "y": "[16, 16] int64"}, {"out": "[16, 30, 5] float32", "y": "[480] int64"}],
    ids=["not seen", "as many steps as samples", "flattened before"],
)
def test_an_order_that_does_not_show(tmp_path: pathlib.Path, tensors: dict[str, str]) -> None:
    """A reshape may pair each prediction with another's target."""
    assert edited(tmp_path, SAME, tensors) == []


def test_no_loss(tmp_path: pathlib.Path) -> None:
    """Elsewhere the values stay in their order."""
    assert edited(tmp_path, "flat = head(out.view(-1, 5))", {}) == ["flat = head(out.reshape(-1, 5))"]
