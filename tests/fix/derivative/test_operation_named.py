"""The calls of the operation that has no derivative are pointed at."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import best, failed, write

SOURCE = """import torch
def tones(images):
    counts = torch.histogram(images, bins=8).hist
    return counts / images.CALL
loss = tones(x)
loss.backward()
"""
FOUND = {
    "a function": ("derivative for aten::histogram is not implemented", "sum()", 3),
    "in quotes": ("the derivative for 'histogram' is not implemented.", "sum()", 3),
    "a part of it": ("the derivative for '_unique2' is not implemented.", "unique()", 4),
    "an argument of it": ("The function 'nll_loss_forward' is not differentiable with respect to argument 'weight'.", "nll_loss(y)", 4),
    "an operation that is not called": ("derivative for aten::bincount is not implemented", "sum()", None),
    "another message": ("histogram is not implemented", "sum()", None),
}  # fmt: skip


@pytest.mark.parametrize(("message", "call", "line"), FOUND.values(), ids=FOUND)
def test_the_call_is_named(tmp_path, message: str, call: str, line: int | None) -> None:
    """With its line, and no edit."""
    program = write(tmp_path, {"train.py": SOURCE.replace("CALL", call)})
    proposal = best("operation_named", program, incident=failed({"train.py": 6}, message))
    assert (proposal.culprit.line if proposal else None) == line
    assert proposal is None or proposal.edits == ()
