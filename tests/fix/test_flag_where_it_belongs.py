"""A flag is taken off a computed tensor."""

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
    "a leaf": (
        HEAD
        + """x.requires_grad = True
net(x).sum().backward()
""",
        "x.requires_grad",
    ),
    "a frozen layer": (
        HEAD
        + """net.requires_grad_(False)
""",
        "net.requires_grad_",
    ),
    "a frozen weight": (
        HEAD
        + """net.weight.requires_grad = False
""",
        "net.weight",
    ),
    "a line that is not at fault": (
        HEAD
        + """h = net(x)
h.requires_grad = True
print(h)
""",
        "print(h)",
    ),
}
WRONG = {
    "an activation": (
        HEAD
        + """h = net(x)
h.requires_grad = True
h.sum().backward()
""",
        "h.requires_grad",
        [],
    ),
    "an activation whose gradient is read": (
        HEAD
        + """h = net(x)
h.requires_grad = True
h.sum().backward()
print(h.grad)
""",
        "h.requires_grad",
        ["h.retain_grad()"],
    ),
    "an activation that gets no gradient": (
        HEAD
        + """h = net(x)
h.requires_grad = False
loss = (h + net(x)).sum()
""",
        "h.requires_grad",
        ["h = h.detach()"],
    ),
    "a pruned weight": (
        HEAD
        + """from torch.nn.utils import prune
prune.l1_unstructured(net, "weight", amount=0.5)
net.weight.requires_grad = False
""",
        "net.weight.r",
        ["net.weight_orig.requires_grad = False"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Flags of leaves are left alone."""
    assert rewritten(tmp_path, "flag_where_it_belongs", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The flag goes, or moves to the leaf; a second time nothing is left to do."""
    after = rewritten(tmp_path, "flag_where_it_belongs", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "flag_where_it_belongs", after, again) == after
