"""A bool tensor is a number where it is subtracted; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import is_mended, mended  # noqa: E402

HEAD = """import torch
x, done = torch.arange(4.0), torch.tensor([True, False, False, True])
"""
NOT_DONE = "torch.tensor([0.0, 1.0, 1.0, 0.0])"
WRONG = {
    "a factor": ("out = x * (1 - done)", "out = x * (1 - done.float())", f"x * {NOT_DONE}"),
    "a comparison": ("out = x * (1 - (x > 1))", "out = x * (1 - (x > 1).float())", "x * torch.tensor([1.0, 1.0, 0.0, 0.0])"),
    "less one": ("out = (done - 1) * 9", "out = (done.float() - 1) * 9", f"{NOT_DONE} * -9"),
    "an index": ("out = x[1 - done]", "out = x[~done]", "x[1:3]"),
    "what is filled": (
        "out = x.masked_fill(1 - done, 7.0)",
        "out = x.masked_fill(~done, 7.0)",
        "torch.tensor([0.0, 7.0, 7.0, 3.0])",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "line", "equal"), WRONG.values(), ids=WRONG)
def test_a_mask_becomes_a_number(body: str, line: str, equal: str, tmp_path: pathlib.Path) -> None:
    assert is_mended("number_of_mask", HEAD, body, line, equal, tmp_path)


def test_two_masks_stay(tmp_path: pathlib.Path) -> None:
    """Of two masks either may be meant: to tell them apart, or to take one from the other."""
    source = f"{HEAD}out = done - (x > 1)\n"
    assert mended("number_of_mask", source, tmp_path) == source
