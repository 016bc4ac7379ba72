"""What was reduced is kept as wide as what it was made of."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = "import torch\n\n\ndef step(x, y):\n"
MESSAGE = "The size of tensor a (16) must match the size of tensor b (4) at non-singleton dimension 1"
WRONG = {
    "a mean": ("out = x - x.mean(dim=1)", "out = x - x.mean(dim=1, keepdim=True)"),
    "a sum of powers": ("out = x / x.pow(2).sum(-1).sqrt()", "out = x / x.pow(2).sum(-1, keepdim=True).sqrt()"),
    "a function": ("out = x / torch.norm(x, dim=1)", "out = x / torch.norm(x, dim=1, keepdim=True)"),
    "a factor of it": (
        "out = 2 * x / x.norm(dim=(1, 2)).clamp(min=1e-9)",
        "out = 2 * x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-9)",
    ),
    "a term of a sum": ("out = y(x) + x - x.mean(1)", "out = y(x) + x - x.mean(1, keepdim=True)"),
    "a method": ("out = x.div_(x.norm(dim=1))", "out = x.div_(x.norm(dim=1, keepdim=True))"),
    "behind a name": (
        "centre = x.mean(1)\n    out = x - centre",
        "centre = x.mean(1, keepdim=True)",
    ),
}
RIGHT = {
    "kept already": "out = x - x.mean(dim=1, keepdim=True)",
    "the first axis": "out = x - x.mean(dim=0)",
    "all of it": "out = x - x.mean()",
    "another tensor": "out = y - x.mean(dim=1)",
}


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_the_axis_is_kept(body: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """Where it is reduced; a second time nothing is left to do."""
    source = f"{HEAD}    {body}\n    return out\n"
    after = rewritten(tmp_path, "keep_reduced_axis", source, "out =", message=MESSAGE)
    assert diff_lines(source, after)[1:] == [f"+    {wanted}"]
    assert rewritten(tmp_path, "keep_reduced_axis", after, "out =", message=MESSAGE) == after


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_others_stay(body: str, tmp_path: pathlib.Path) -> None:
    """What fits, or is made of something else."""
    source = f"{HEAD}    {body}\n    return out\n"
    assert rewritten(tmp_path, "keep_reduced_axis", source, "out =", message=MESSAGE) == source
