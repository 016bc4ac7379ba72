"""What torch picks or writes by becomes int64, where it refuses another dtype; the values are those of the same index as int64."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import is_mended, mended, run
from tests.fix.rewriting import changed_lines

pytestmark = pytest.mark.torch
HEAD = """import torch
import torch.nn.functional as F
torch.manual_seed(0)
q, column = torch.randn(6, 3), torch.randn(6, 1)
floats = torch.tensor([0.0, 2.0, 1.0, 1.0, 0.0, 2.0])
short, small = floats.to(torch.int16), floats.to(torch.int32)
"""
WRONG = {
    "gather": ("out = q.gather(1, floats.unsqueeze(1))", "out = q.gather(1, floats.unsqueeze(1).long())"),
    "gather by keyword": ("out = torch.gather(q, 1, index=short[:, None])", "out = torch.gather(q, 1, index=short[:, None].long())"),
    "scatter": ("out = torch.zeros(3, 3).scatter_add(0, short[:, None].expand(6, 3), q)", "out = torch.zeros(3, 3).scatter_add(0, short[:, None].expand(6, 3).long(), q)"),
    "index_add": ("out = torch.zeros(3, 3).index_add_(0, floats, q)", "out = torch.zeros(3, 3).index_add_(0, floats.long(), q)"),
    "index_select": ("out = torch.index_select(q, 0, floats)", "out = torch.index_select(q, 0, floats.long())"),
    "take": ("out = q.take(small)", "out = q.take(small.long())"),
    "classes": ("out = F.one_hot(small, 3)", "out = F.one_hot(small.long(), 3)"),
    "rows": ("out = q[floats]", "out = q[floats.long()]"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "line"), WRONG.values(), ids=WRONG)
def test_the_index_becomes_int64(body: str, line: str, tmp_path: pathlib.Path) -> None:
    """On the line that raised, whatever dtype it had."""
    equal = (
        body.removeprefix("out = ")
        .replace("floats", "floats.long()")
        .replace("short", "short.long()")
        .replace("small", "small.long()")
    )
    assert is_mended("whole_index", HEAD, body, line, equal, tmp_path)


@pytest.mark.parametrize(
    "body", ["out = q[small.long(), floats.long(), 0]", "out = q @ q"], ids=["too many", "a product"]
)
def test_another_fault(body: str, tmp_path: pathlib.Path) -> None:
    """No index is cast where torch refused something else."""
    assert mended("whole_index", f"{HEAD}{body}\n", tmp_path) == f"{HEAD}{body}\n"


def test_all_tables_of_a_line_are_asked_by_whole_numbers(tmp_path: pathlib.Path) -> None:
    """With one of them alone the line fails at the next; what is no table keeps its floats."""
    body = (
        "users, items = torch.nn.Embedding(3, 2), torch.nn.Embedding(3, 4)\nprice, head = column, torch.nn.Linear(1, 1)\n"
        "places = floats * 1\nout = torch.cat([users(floats), items(places), head(price)], 1)"
    )
    after = mended("whole_index", f"{HEAD}{body}\n", tmp_path)
    assert changed_lines(f"{HEAD}{body}\n", after) == [
        "out = torch.cat([users(floats.long()), items(places.long()), head(price)], 1)"
    ]
    run(after, tmp_path / "after.py")
