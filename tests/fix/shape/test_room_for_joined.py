"""A table of positions has room for the token that is joined; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import mended, run  # noqa: E402
from tests.fix.rewriting import changed_lines  # noqa: E402

SOURCE = """import torch
from torch import nn


class Patches(nn.Module):
    def __init__(self, size=8, patch=2, dim=4):
        super().__init__()
        count = (size // patch) ** 2
        self.token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.zeros(1, count, dim))

    def forward(self, x):
        first = self.token.expand(x.size(0), -1, -1)
        x = torch.cat([first, x], dim=1)
        return x + self.positions


out = Patches()(torch.ones(3, 16, 4)).shape
"""
INLINE = SOURCE.replace(
    "        x = torch.cat([first, x], dim=1)\n        return x", "        return torch.cat((first, x), 1)"
)
TABLE = "self.positions = nn.Parameter(torch.zeros(1, count + 1, dim))"
WRONG = {
    "a name": (SOURCE, TABLE),
    "in place": (INLINE, TABLE),
    "scaled": (
        SOURCE.replace("torch.zeros(1, count, dim))", "0.02 * torch.randn(1, count, dim))"),
        "self.positions = nn.Parameter(0.02 * torch.randn(1, count + 1, dim))",
    ),
    "a number": (
        SOURCE.replace("torch.zeros(1, count, dim))", "torch.zeros((1, 16, dim)))"),
        "self.positions = nn.Parameter(torch.zeros((1, 17, dim)))",
    ),
    "a product": (
        SOURCE.replace("torch.zeros(1, count, dim))", "torch.zeros(1, 4 * patch * patch, dim))"),
        "self.positions = nn.Parameter(torch.zeros(1, 4 * patch * patch + 1, dim))",
    ),
    "made by a function": (
        SOURCE.replace("nn.Parameter(torch.zeros(1, count, dim))", "table(count, dim)").replace(
            "class Patches", "def table(n, d):\n    return nn.Parameter(torch.ones(1, n, d))\n\n\nclass Patches"
        ),
        "return nn.Parameter(torch.ones(1, n + 1, d))",
    ),
}
RIGHT = {
    "nothing is joined": SOURCE.replace("torch.cat([first, x], dim=1)", "nn.functional.pad(x, (0, 0, 1, 0))"),
    "more is missing than is joined": SOURCE.replace("(1, count, dim)", "(1, count - 2, dim)"),
}


@pytest.mark.parametrize(("source", "line"), WRONG.values(), ids=WRONG)
def test_the_joined_token_gets_a_position(source: str, line: str, tmp_path: pathlib.Path) -> None:
    after = mended("room_for_joined", source, tmp_path)
    assert changed_lines(source, after) == [line]
    assert run(after, tmp_path / "after.py")["out"] == (3, 17, 4)


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_differences_stay(source: str, tmp_path: pathlib.Path) -> None:
    assert mended("room_for_joined", source, tmp_path) == source
