"""What is differentiated twice runs uncompiled."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
net = nn.Linear(4, 1)
x = torch.randn(2, 4, requires_grad=True)
"""
RIGHT = {
    "no compilation": (
        HEAD
        + """(g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
""",
        "",
    ),
    "a first derivative": (
        HEAD
        + """fast = torch.compile(net)
(g,) = torch.autograd.grad(fast(x).sum(), x)
""",
        "",
    ),
    "a compiled forward beside it": (
        HEAD
        + """fast = torch.compile(net)
score = fast(x)
(g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
""",
        "",
    ),
}
WRONG = {
    "a call in the gradient": (
        HEAD
        + """fast = torch.compile(net)
(g,) = torch.autograd.grad(fast(x).sum(), x, create_graph=True)
""",
        "",
        ["(g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)"],
    ),
    "a score before it": (
        HEAD
        + """fast = torch.compile(net, backend="aot_eager")
score = fast(x)
(g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
""",
        "",
        ["score = net(x)"],
    ),
    "a name that was bound anew": (
        HEAD
        + """net = torch.compile(net)
score = net(x)
(g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
""",
        "",
        ["score = net._orig_mod(x)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """What is not compiled, or differentiated once, is left alone."""
    assert rewritten(tmp_path, "eager_for_second_derivative", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The eager module runs there; a second time nothing is left to do."""
    after = rewritten(tmp_path, "eager_for_second_derivative", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "eager_for_second_derivative", after, again) == after
