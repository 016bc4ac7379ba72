"""Under `vmap` a branch on a value is a `where`."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "a where": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
y = torch.where(e < 1, e, e * 2)
""",
        "y =",
    ),
    "a test of a number": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
y = a if flag else b
""",
        "y =",
    ),
    "another line": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
y = a if e < 1 else b
z = y
""",
        "z =",
    ),
}
WRONG = {
    "an expression": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
y = a * e if e < 1 else b
""",
        "y =",
        ["-y = a * e if e < 1 else b", "+y = torch.where(e < 1, a * e, b)"],
    ),
    "in a return": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def f(e):
    return e.pow(2) if e > 0 else -e
""",
        "return",
        ["-    return e.pow(2) if e > 0 else -e", "+    return torch.where(e > 0, e.pow(2), -e)"],
    ),
    "a nested test": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
y = (a if e < 1 else b).sum()
""",
        "y =",
        ["-y = (a if e < 1 else b).sum()", "+y = (torch.where(e < 1, a, b)).sum()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "branch_as_where", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "branch_as_where", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "branch_as_where", after, still) == after


@pytest.mark.parametrize(
    "end", ["    return e.abs() - 0.5\n", "    else:\n        return e.abs() - 0.5\n"], ids=["behind", "else"]
)
def test_one_value_or_the_other_is_returned(end: str, tmp_path: pathlib.Path) -> None:
    """Both are computed, and one is taken for each sample."""
    source = f"import torch\n\ndef huber(e):\n    if e.abs() < 1.0:\n        return 0.5 * e ** 2\n{end}"
    after = rewritten(tmp_path, "branch_as_where", source, "if e")
    assert (
        after.rstrip()
        == "import torch\n\ndef huber(e):\n    return torch.where(e.abs() < 1.0, 0.5 * e ** 2, e.abs() - 0.5)"
    )
    more = source.replace("        return 0.5", "        e = e * 2\n        return 0.5")
    assert rewritten(tmp_path, "branch_as_where", more, "if e") == more
