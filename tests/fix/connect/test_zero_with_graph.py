"""A zero that a loss begins or ends with hangs on the output."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(2, 4), torch.tensor([0, 1])
"""
RIGHT = {
    "a sum that is always added to": (
        HEAD
        + """def total(out):
    loss = torch.zeros(())
    loss = loss + out.sum()
    return loss


loss = total(net(x))
loss.backward()
""",
        "loss.backward()",
    ),
    "a zero of the output": (
        HEAD
        + """def total(out, rows):
    loss = out.sum() * 0
    for row in rows:
        loss = loss + out[row].sum()
    return loss


loss = total(net(x), [])
loss.backward()
""",
        "loss.backward()",
    ),
    "a function without a graph": (
        HEAD
        + """def count(rows):
    n = torch.zeros(())
    for row in rows:
        n = n + row.sum()
    return n


count(x)
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "a running mean": (
        HEAD
        + """mean = torch.zeros(())
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
    ),
}
WRONG = {
    "a loop that may not run": (
        HEAD
        + """def total(out, rows):
    loss = torch.zeros(())
    for row in rows:
        loss = loss + out[row].sum()
    return loss


loss = total(net(x), [])
loss.backward()
""",
        "loss.backward()",
        ["loss = out.sum() * 0"],
    ),
    "an early return": (
        HEAD
        + """def masked(out, mask):
    if not mask.any():
        return torch.tensor(0.0, device=out.device)
    return F.cross_entropy(out[mask], y[mask])


loss = masked(net(x), y > 5)
loss.backward()
""",
        "loss.backward()",
        ["return out.sum() * 0"],
    ),
    "an early return beside a figure": (
        HEAD
        + """def masked(out, mask):
    if not mask.any():
        return torch.tensor(0.0), 0
    return F.cross_entropy(out[mask], y[mask]), int(mask.sum())


loss, count = masked(net(x), y > 5)
loss.backward()
""",
        "loss.backward()",
        ["return out.sum() * 0, 0"],
    ),
    "a branch that may be left out": (
        HEAD
        + """def aux(out, use):
    loss = torch.tensor([0.0])
    if use:
        loss = loss + out.norm()
    return loss


loss = aux(net(x), False)
loss.backward()
""",
        "loss.backward()",
        ["loss = out.sum() * 0"],
    ),
    "a model inside": (
        HEAD
        + """def run(rows):
    out = net(rows)
    loss = torch.tensor(0.0)
    for one in out:
        loss += one.sum()
    return loss


loss = run(x[:0])
loss.backward()
""",
        "loss.backward()",
        ["loss = out.sum() * 0"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Sums that are always added to, and values without a graph, are left alone."""
    assert rewritten(tmp_path, "zero_with_graph", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The zero has a graph; a second time nothing is left to do."""
    after = rewritten(tmp_path, "zero_with_graph", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "zero_with_graph", after, again) == after
