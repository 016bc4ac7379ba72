"""A checkpointed segment that runs without a graph is suspect where the optimizer owns what is in it."""

from __future__ import annotations

import pathlib

import pytest

from tests.gate import some_at_gate
from tests.live.test_unowned import run

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

HEAD = """import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
stem, block, head = nn.Linear(3, 4).requires_grad_(False), nn.Linear(4, 4), nn.Linear(4, 2)
x = torch.randn(8, 3)
"""
LOOP = """
for _ in range(4):
    loss = head(checkpoint(block, stem(x), use_reentrant={form})).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BOTH = "opt = torch.optim.Adam([*block.parameters(), *head.parameters()])\n"
PROGRAMS = {
    "a block that should train": (HEAD + BOTH + LOOP.format(form=True), "no-graph/checkpoint-inputs-need-grad"),
    "a block that is frozen too": (HEAD + "block.requires_grad_(False)\n" + BOTH + LOOP.format(form=True), None),
    "the non-reentrant form": (HEAD + BOTH + LOOP.format(form=False), None),
}  # fmt: skip


@pytest.mark.parametrize(("source", "cause"), some_at_gate(PROGRAMS, ["a block that should train"]))
def test_what_gets_no_gradient(source: str, cause: str | None, tmp_path: pathlib.Path) -> None:
    """The run ends well, and its report says what did not train."""
    status, _, found = run(tmp_path, source)
    assert status == 0
    assert found == cause
