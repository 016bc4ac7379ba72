"""The parts of a sharded optimizer's state are gathered by all ranks before one of them saves them."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch


def save(path, model, optimizer, rank):
    if rank == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def train(rank):
    save("half.pt", model, optimizer, rank)
"""
MESSAGE = (
    "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to=0)` on all ranks"
)
CALL = "optimizer.consolidate_state_dict(to=0)"


def test_it_stands_before_the_branch(tmp_path: pathlib.Path) -> None:
    """Where all ranks come by."""
    after = rewritten(tmp_path, "consolidate_before_saving", SOURCE, "torch.save", message=MESSAGE)
    assert changed_lines(SOURCE, after) == [CALL]
    assert f"    {CALL}\n    if rank == 0:\n" in after


@pytest.mark.parametrize(
    ("old", "new"),
    [('    save("half', '    if rank == 0:\n        save("half'), ("    if rank == 0:\n        torch", "    torch")],
    ids=["called by one rank", "no branch"],
)
def test_the_line_alone(tmp_path: pathlib.Path, old: str, new: str) -> None:
    """Where it would wait for ranks that do not come, or it is not known which one saves."""
    source = SOURCE.replace(old, new)
    assert source != SOURCE
    assert rewritten(tmp_path, "consolidate_before_saving", source, "torch.save", message=MESSAGE) == source
