"""Dual tensors are made and read inside one level."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "inside": (
        """import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1, bias=False))
inputs, direction = torch.rand(5, 3), torch.rand(5, 3)
with forward_ad.dual_level():
    output = model(forward_ad.make_dual(inputs, direction))
    value, slope = forward_ad.unpack_dual(output)
loss = (slope - 1).pow(2).mean()
loss.backward()
""",
        "make_dual",
    ),
    "no dual tensor": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
y = x * 2
""",
        "y =",
    ),
}
WRONG = {
    "make and unpack": (
        """import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1, bias=False))
inputs, direction = torch.rand(5, 3), torch.rand(5, 3)
output = model(forward_ad.make_dual(inputs, direction))
value, slope = forward_ad.unpack_dual(output)
loss = (slope - 1).pow(2).mean()
loss.backward()
""",
        "make_dual",
        [
            "-output = model(forward_ad.make_dual(inputs, direction))",
            "-value, slope = forward_ad.unpack_dual(output)",
            "+with forward_ad.dual_level():",
            "+    output = model(forward_ad.make_dual(inputs, direction))",
            "+    value, slope = forward_ad.unpack_dual(output)",
        ],
    ),
    "in a function": (
        """import torch
from torch.autograd import forward_ad as fwAD
def slope(f, x, v):
    dual = fwAD.make_dual(x, v)
    out = f(dual)
    return fwAD.unpack_dual(out).tangent
""",
        "make_dual",
        [
            "-    dual = fwAD.make_dual(x, v)",
            "-    out = f(dual)",
            "-    return fwAD.unpack_dual(out).tangent",
            "+    with fwAD.dual_level():",
            "+        dual = fwAD.make_dual(x, v)",
            "+        out = f(dual)",
            "+        return fwAD.unpack_dual(out).tangent",
        ],
    ),
    "the whole name": (
        """import torch
import torch.autograd.forward_ad
d = torch.autograd.forward_ad.make_dual(x, v)
""",
        "make_dual",
        [
            "-d = torch.autograd.forward_ad.make_dual(x, v)",
            "+with torch.autograd.forward_ad.dual_level():",
            "+    d = torch.autograd.forward_ad.make_dual(x, v)",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "open_dual_level", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "open_dual_level", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "open_dual_level", after, still) == after


BEHIND = """import torch.autograd.forward_ad as forward


def along(field, points, direction):
    with forward.dual_level():
        out = field(forward.make_dual(points, direction))
    return forward.unpack_dual(out).tangent


print(2 * along(torch.sin, x, v))
"""
NONE = "unsupported operand type(s) for *: 'int' and 'NoneType'"


def test_what_is_read_behind_the_level(tmp_path: pathlib.Path) -> None:
    """Its tangent is None there, and the failure is elsewhere."""
    after = rewritten(tmp_path, "open_dual_level", BEHIND, "print(", message=NONE)
    assert [one for one in diff_lines(BEHIND, after) if one[0] in "+-"] == [
        "-    return forward.unpack_dual(out).tangent",
        "+        return forward.unpack_dual(out).tangent",
    ]
    assert rewritten(tmp_path, "open_dual_level", after, "print(", message=NONE) == after
    assert rewritten(tmp_path, "open_dual_level", BEHIND, "print(", message="it failed") == BEHIND
