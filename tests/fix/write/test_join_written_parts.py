"""A loop that writes into the parts of a tensor joins them again."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

MESSAGE = "Output 0 of SplitWithSizes is a view and is being modified inplace. This view is the output of a function that returns multiple views."
SOURCE = """import torch

def centre(h, sizes):
    for part in h.split(sizes):
        part -= part.mean(dim=0, keepdim=True)
    return h / h.norm()
"""
LOOPS = {
    "split": (("", ""), "h = torch.cat([part - part.mean(dim=0, keepdim=True) for part in h.split(sizes)])"),
    "along an axis": (
        ("h.split(sizes)", "torch.split(h, sizes, dim=-1)"),
        "h = torch.cat([part - part.mean(dim=0, keepdim=True) for part in torch.split(h, sizes, dim=-1)], -1)",
    ),
    "by its place": (
        ("h.split(sizes)", "h.chunk(4, 1)"),
        "h = torch.cat([part - part.mean(dim=0, keepdim=True) for part in h.chunk(4, 1)], 1)",
    ),
    "unbind": (
        ("h.split(sizes)", "h.unbind(1)"),
        "h = torch.stack([part - part.mean(dim=0, keepdim=True) for part in h.unbind(1)], 1)",
    ),
    "a method": (
        ("part -= part.mean(dim=0, keepdim=True)", "part.mul_(2 + part.std())"),
        "h = torch.cat([part * (2 + part.std()) for part in h.split(sizes)])",
    ),
    "with others": (
        ("for part in h.split(sizes)", "for part, s in zip(h.split(sizes), scales)"),
        "h = torch.cat([part - part.mean(dim=0, keepdim=True) for part, s in zip(h.split(sizes), scales)])",
    ),
}
STAYS = {
    "read no more": ("return h / h.norm()", "return sizes"),
    "another name": ("part -= part.mean(dim=0, keepdim=True)", "other -= part.mean(dim=0, keepdim=True)"),
    "by the whole": ("part.mean(dim=0, keepdim=True)", "h.mean(dim=0, keepdim=True)"),
    "an attribute": ("h.split(sizes)", "self.h.split(sizes)"),
    "more than that": (
        "        part -= part.mean(dim=0, keepdim=True)\n",
        "        part -= part.mean(dim=0, keepdim=True)\n        total += part.sum()\n",
    ),
    "others": ("h.split(sizes)", "h.parts(sizes)"),
}


@pytest.mark.parametrize(("change", "wanted"), LOOPS.values(), ids=LOOPS)
def test_the_parts_are_joined(change: tuple[str, str], wanted: str, tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace(*change) if change[0] else SOURCE
    at = "part.mul_" if "part.mul_" in source else "part -="
    after = rewritten(tmp_path, "join_written_parts", source, at, message=MESSAGE)
    assert diff_lines(source, after)[2:] == [f"+    {wanted}"]


@pytest.mark.parametrize("change", STAYS.values(), ids=STAYS)
def test_loops_that_stay(change: tuple[str, str], tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace(*change)
    assert rewritten(tmp_path, "join_written_parts", source, "-=", message=MESSAGE) == source
