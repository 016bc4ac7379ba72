"""Views of `unbind` that are written for the tensor under them."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "Output 0 of Unbind is a view and is being modified inplace."
PROGRAM = """import torch

def clip(boxes, width):
    UNBOUND
    for one in (x, y):
        one.clamp_(0, width)
    return boxes
"""
CURED = {
    "x, y = boxes.unbind(dim=-1)": "x, y = boxes[..., 0], boxes[..., 1]",
    "x, y = torch.unbind(boxes, 1)": "x, y = boxes[:, 0], boxes[:, 1]",
    "x, y = boxes.unbind()": "x, y = boxes[0], boxes[1]",
    "x, y, _ = boxes.unbind(-2)": "x, y, _ = boxes.select(-2, 0), boxes.select(-2, 1), boxes.select(-2, 2)",
}


@pytest.mark.parametrize(("unbound", "wanted"), CURED.items(), ids=CURED)
def test_indexes_the_tensor(tmp_path: pathlib.Path, unbound: str, wanted: str) -> None:
    """One view each, which autograd can write through."""
    source = PROGRAM.replace("UNBOUND", unbound)
    after = rewritten(tmp_path, "select_for_unbind", source, "clamp_", message=MESSAGE)
    assert changed_lines(source, after) == [wanted]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (PROGRAM.replace("UNBOUND", "x, y = boxes.unbind(-1)").replace("return boxes", "return x"), MESSAGE),
        (PROGRAM.replace("UNBOUND", "x, y = boxes.unbind(axis)"), MESSAGE),
        (PROGRAM.replace("UNBOUND", "x, y = boxes.unbind(-1)"), "Output 0 of Split is a view"),
        (PROGRAM.replace("UNBOUND", "x, y = make().unbind(-1)"), MESSAGE),
    ],
    ids=["not read again", "a dimension that is not known", "another function", "no name"],
)
def test_leaves(tmp_path: pathlib.Path, source: str, message: str) -> None:
    """Nothing to be indexed, or nothing that reads it."""
    assert rewritten(tmp_path, "select_for_unbind", source, "clamp_", message=message) == source
