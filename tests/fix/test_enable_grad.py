"""Grad mode is on where a gradient is taken, and not left off behind an evaluation."""

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
    "switched on already": (
        HEAD
        + """def attack(x):
    x = x.clone().requires_grad_(True)
    with torch.enable_grad():
        (g,) = torch.autograd.grad(net(x).sum(), x)
    return g


with torch.no_grad():
    attack(x)
""",
        "autograd.grad",
    ),
    "an evaluation with a decorator": (
        HEAD
        + """@torch.no_grad()
def evaluate():
    return net(x)


evaluate()
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "switched off and on": (
        HEAD
        + """def evaluate():
    torch.set_grad_enabled(False)
    net(x)
    torch.set_grad_enabled(True)


evaluate()
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "a loss whose graph is cut": (
        HEAD
        + """def evaluate():
    torch.set_grad_enabled(False)
    net(x)


loss = net(x).sum().detach()
loss.backward()
""",
        "loss.backward()",
    ),
}
WRONG = {
    "left off": (
        HEAD
        + """def evaluate():
    torch.set_grad_enabled(False)
    return net(x)


evaluate()
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
        ["@torch.no_grad()"],
    ),
    "left off in a method": (
        HEAD
        + """class Judge:
    def score(self, rows):
        torch.set_grad_enabled(False)
        return net(rows)


Judge().score(x)
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
        ["@torch.no_grad()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Evaluations that switch it on again are left alone."""
    assert rewritten(tmp_path, "enable_grad", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """Grad mode is off inside the evaluation only; a second time nothing is left to do."""
    after = rewritten(tmp_path, "enable_grad", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "enable_grad", after, again) == after
