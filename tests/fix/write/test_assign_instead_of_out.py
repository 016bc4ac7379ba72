"""A call that was given `out=` assigns its result."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

MESSAGE = "mul(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
TOP = "import torch\nclass N(torch.nn.Module):\n    def __init__(self):\n        self.register_buffer('kept', torch.zeros(3))\n    def forward(self, x, given):\n        h = torch.tanh(x)\n"
RIGHT = {
    "a part of a tensor": "        torch.mul(h, x, out=h[0])\n        return h",
    "the caller's tensor": "        torch.mul(h, x, out=given)\n        return h",
    "a buffer": "        torch.mul(h, x, out=self.kept)\n        return self.kept",
    "another name for the result": "        y = torch.mul(h, x, out=h)\n        return y + h",
}
WRONG = {
    "a statement": (
        "        torch.mul(h, x, out=h)\n        return h",
        ["-        torch.mul(h, x, out=h)", "+        h = torch.mul(h, x)"],
    ),
    "assigned already": (
        "        h = torch.mul(h, x, out=h)\n        return h",
        ["-        h = torch.mul(h, x, out=h)", "+        h = torch.mul(h, x)"],
    ),
    "behind another keyword": (
        "        torch.sum(h, dim=0, out=h)\n        return h",
        ["-        torch.sum(h, dim=0, out=h)", "+        h = torch.sum(h, dim=0)"],
    ),
    "before another keyword": (
        "        torch.sum(h, out=h, dim=0)\n        return h",
        ["-        torch.sum(h, out=h, dim=0)", "+        h = torch.sum(h, dim=0)"],
    ),
    "two results": (
        "        v, i = torch.empty(3), torch.empty(3).long()\n        torch.max(h, 1, out=(v, i))\n        return v",
        ["-        torch.max(h, 1, out=(v, i))", "+        v, i = torch.max(h, 1)"],
    ),
    "an attribute": (
        "        torch.add(h, 1, out=self.last)\n        return self.last",
        ["-        torch.add(h, 1, out=self.last)", "+        self.last = torch.add(h, 1)"],
    ),
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where a new tensor would not reach all that hold the old one."""
    assert rewritten(tmp_path, "assign_instead_of_out", TOP + body, "out=", message=MESSAGE) == TOP + body


def test_another_failure_stays(tmp_path: pathlib.Path) -> None:
    """`out=` is right where nothing requires grad."""
    body = "        torch.mul(h, x, out=h)\n        return h"
    assert rewritten(tmp_path, "assign_instead_of_out", TOP + body, "out=") == TOP + body


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The result has the name of the tensor that was to be written."""
    after = rewritten(tmp_path, "assign_instead_of_out", TOP + body, "out=", message=MESSAGE)
    assert diff_lines(TOP + body, after) == changes
