"""Each line that saved what a loop writes is told, however many steps the first of them has saved in."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import gradfix  # noqa: E402

pytestmark = pytest.mark.torch


def test_both_readers_of_a_memory() -> None:
    """A backward stops at the first: a copy there alone would fail at the other one."""
    table, keys = torch.zeros(3, 3), torch.nn.Linear(3, 3)
    read = []
    with pytest.raises(RuntimeError, match="inplace"), gradfix.trace() as seen:
        for x in torch.ones(20, 3):
            key = keys(x).softmax(0)
            surprise = x - key @ table
            table += torch.outer(key, surprise)
            read.append(torch.mv(table, key))
        torch.stack(read).sum().backward()
    told = [(one.kind, one.operation) for one in seen.lines if one.kind == "read"]
    assert sorted(told) == [("read", "matmul"), ("read", "mv")]
