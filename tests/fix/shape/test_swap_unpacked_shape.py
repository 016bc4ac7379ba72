"""The sizes of a weight are taken in the order in which its layer keeps them."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch
from torch import nn

class Conv1D(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(narrow, wide))
    def forward(self, x):
        return x @ self.weight

class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        UNPACKED
        self.a, self.b = nn.Parameter(torch.ones(2, wide)), nn.Parameter(torch.zeros(long, 2))
    def forward(self, x):
        return self.base(x) + (x @ self.a.T) @ self.b.T

out = Adapter(BASE)(torch.ones(5, 3))
"""
MESSAGE = "mat1 and mat2 shapes cannot be multiplied (5x3 and 7x2)"
CASES = {
    "a Conv1D": ("long, wide = base.weight.shape", "Conv1D(7, 3)", "wide, long = base.weight.shape"),
    "a Linear": ("wide, long = base.weight.size()", "nn.Linear(3, 7)", "long, wide = base.weight.size()"),
    "in parentheses": ("(long, wide) = base.weight.shape", "Conv1D(7, 3)", "(wide, long) = base.weight.shape"),
}


@pytest.mark.torch
@pytest.mark.parametrize(("unpacked", "base", "wanted"), CASES.values(), ids=CASES)
def test_the_sizes_change_places(tmp_path: pathlib.Path, unpacked: str, base: str, wanted: str) -> None:
    """The product is refused before, and gives the sum after."""
    torch = pytest.importorskip("torch")
    source = SOURCE.replace("UNPACKED", unpacked).replace("BASE", base)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        exec(compile(source, "before", "exec"), {})  # noqa: S102
    after = rewritten(tmp_path, "swap_unpacked_shape", source, "x @ self.a.T", message=MESSAGE)
    assert changed_lines(source, after) == [wanted]
    space: dict = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    assert space["out"].shape == torch.Size([5, 7])


@pytest.mark.parametrize(
    ("unpacked", "message"),
    [
        ("long, wide = base.weight.shape", "size mismatch for a"),
        ("long, wide = base.sizes", MESSAGE),
        ("wide = 7; long, _ = base.weight.shape", MESSAGE),
    ],
    ids=["another failure", "no weight", "one of them is used"],
)
def test_the_rest_stays(tmp_path: pathlib.Path, unpacked: str, message: str) -> None:
    """Nothing speaks of an order there."""
    source = SOURCE.replace("UNPACKED", unpacked).replace("BASE", "nn.Linear(3, 7)")
    assert rewritten(tmp_path, "swap_unpacked_shape", source, "x @ self.a.T", message=message) == source
