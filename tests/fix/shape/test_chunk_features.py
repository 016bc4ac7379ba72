"""Cuts that were meant for the features and go through the batch."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

PROGRAM = """import torch

def encode(net, head, x):
    CUT
    return head(mean)
"""
REFUSED = "mat1 and mat2 shapes cannot be multiplied (8x6 and 3x8)"
NORM = "Given normalized_shape=[3], expected input with shape [*, 3], but got input of size[8, 6]"
FEWER = "not enough values to unpack (expected 3, got 2)"
CURED = {
    "mean, scale = net(x).chunk(2)": (REFUSED, "head(mean", "mean, scale = net(x).chunk(2, dim=-1)"),
    "mean, scale = torch.chunk(net(x), 2)": (REFUSED, "head(mean", "mean, scale = torch.chunk(net(x), 2, dim=-1)"),
    "mean, scale = net(x).split(4)": (REFUSED, "head(mean", "mean, scale = net(x).split(4, dim=-1)"),
    "mean, scale = net(x).chunk(2) ": (NORM, "head(mean", "mean, scale = net(x).chunk(2, dim=-1)"),
    "mean, scale, shift = net(x).chunk(3)": (FEWER, "net(x)", "mean, scale, shift = net(x).chunk(3, dim=-1)"),
}
LEFT = {
    "mean, scale = net(x).chunk(2, dim=1)": REFUSED,
    "mean, scale = net(x).chunk(2, 1)": REFUSED,
    "mean, scale, shift = net(x).chunk(3)": REFUSED,
    "mean = net(x).chunk(2)": REFUSED,
    "mean, scale = net(x).chunk(2)": "mat1 and mat2 shapes cannot be multiplied (8x3 and 6x8)",
}


@pytest.mark.parametrize(("cut", "told"), CURED.items(), ids=CURED)
def test_cuts_the_features(tmp_path: pathlib.Path, cut: str, told: tuple[str, str, str]) -> None:
    """As many times the features as there are parts, or fewer rows than parts."""
    message, at, wanted = told
    source = PROGRAM.replace("CUT", cut)
    assert changed_lines(source, rewritten(tmp_path, "chunk_features", source, at, message=message)) == [wanted]


@pytest.mark.parametrize(("cut", "message"), LEFT.items(), ids=LEFT)
def test_leaves(tmp_path: pathlib.Path, cut: str, message: str) -> None:
    """The axis is said, or the numbers tell of something else."""
    source = PROGRAM.replace("CUT", cut)
    assert rewritten(tmp_path, "chunk_features", source, "head(mean", message=message) == source
