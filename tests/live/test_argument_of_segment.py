"""The line that writes what a checkpointed segment was called with is told, though no node of the graph shows the tensor."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

TEXT = """import torch
from torch.utils.checkpoint import checkpoint

layers = [torch.nn.Linear(3, 3) for _ in range(3)]


def run(layer, h, scale):
    return torch.tanh(layer(h)) / WRITE


h, scale = torch.randn(4, 3, requires_grad=True), torch.full((3,), 2.0)
for layer in layers:
    h = checkpoint(run, layer, h, scale, use_reentrant=False)
h.sum().backward()
"""


def traced(folder: pathlib.Path, write: str) -> list[tuple[str, str, int, str]]:
    import gradfix

    path = folder / "train.py"
    path.write_text(TEXT.replace("WRITE", write))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"), gradfix.trace() as seen:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "program"})  # noqa: S102 - the program of a test
    return [(one.kind, one.operation, one.line, one.says) for one in seen.lines if one.kind == "write"]


def test_the_write_is_told(tmp_path: pathlib.Path) -> None:
    says = "`sqrt_` writes what a checkpointed segment saved for backward"
    assert traced(tmp_path, "scale.sqrt_()") == [("write", "sqrt_", 8, says)]


def test_of_two_lines_that_may_have_written_it_none(tmp_path: pathlib.Path) -> None:
    """Another tensor of that shape was written as often."""
    other = "scale.sqrt_()\n\n\nother = torch.ones(3)\nfor _ in range(8):\n    other.mul_(2)"
    assert traced(tmp_path, other) == []
