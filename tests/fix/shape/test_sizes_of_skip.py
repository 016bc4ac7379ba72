"""The layer that enlarges what was rounded down is named, and nothing is edited."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from tests.fix.rewriting import failed, line_of, rewritten, write

HEAD = """import torch
import torch.nn.functional as F
from torch import nn


class Up(nn.Module):
    def __init__(self, width, smooth=False):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2) if smooth else nn.ConvTranspose2d(width, width, 2, stride=2)
        self.conv = nn.Conv2d(2 * width, width, 3, padding=1)

    def forward(self, x, skip):
"""
CAT = "Sizes of tensors must match except in dimension 1. Expected size 15 but got size 14 for tensor number 1 in the list."
SUM = "The size of tensor a (15) must match the size of tensor b (14) at non-singleton dimension 3"
NAMED = {
    "by a name": (
        "        x = self.up(x)  # here\n        return self.conv(torch.cat([skip, x], dim=1))  # fails\n",
        CAT,
    ),
    "there": ("        return self.conv(torch.cat((skip, self.up(x)), 1))  # here, fails\n", CAT),
    "a sum": ("        return skip + F.interpolate(x, scale_factor=2)  # here, fails\n", SUM),
}
OTHER = {
    "another size": (NAMED["by a name"][0], CAT.replace("14", "64")),
    "an odd size": (NAMED["by a name"][0], CAT.replace("14", "13")),
    "another axis": (NAMED["by a name"][0], CAT.replace("dimension 1", "dimension 2")),
    "a size that is told": ("        x = self.up(x, output_size=skip.shape[-2:])\n        return torch.cat([skip, x], 1)  # fails\n", CAT),
    "resized to a size": ("        return skip + F.interpolate(x, size=(14, 14))  # fails\n", SUM),
    "nothing enlarges": ("        x = self.conv(x)\n        return torch.cat([skip, x], 1)  # fails\n", CAT),
}  # fmt: skip


def lines(folder: pathlib.Path, body: str, message: str) -> list[int | None]:
    source = HEAD + body
    program = write(folder, {"train.py": source})
    context = Context(program=program, incident=failed({"train.py": line_of(source, "fails")}, message))
    found = list(find_codemod("sizes_of_skip")(context))
    assert all(one.edits == () for one in found)
    return [one.culprit.line for one in found]


@pytest.mark.parametrize(("body", "message"), NAMED.values(), ids=NAMED)
def test_what_enlarges(tmp_path: pathlib.Path, body: str, message: str) -> None:
    """A transposed convolution or a doubling, where it is called."""
    assert lines(tmp_path, body, message) == [line_of(HEAD + body, "here")]


@pytest.mark.parametrize(("body", "message"), OTHER.values(), ids=OTHER)
def test_nothing_else(tmp_path: pathlib.Path, body: str, message: str) -> None:
    """No rounding of halves explains it, or the size is said."""
    assert lines(tmp_path, body, message) == []


ODD = "The size of tensor a (9) must match the size of tensor b (10) at non-singleton dimension 3"
ROUNDED_UP = {
    "a sum": (
        "skip + F.interpolate(x, scale_factor=2, mode='nearest')",
        "skip + F.interpolate(x, size=skip.shape[2:], mode='nearest')",
    ),
    "no mode": ("F.interpolate(x, scale_factor=2) + skip", "F.interpolate(x, size=skip.shape[2:]) + skip"),
    "values between": (
        "skip + F.interpolate(x, scale_factor=2, mode='bilinear')",
        None,
    ),  # cut off, they would be others
    "four times": ("skip + F.interpolate(x, scale_factor=4)", None),
    "what is met has no name": ("self.conv(skip) + F.interpolate(x, scale_factor=2)", None),
}


@pytest.mark.parametrize(("body", "wanted"), ROUNDED_UP.values(), ids=ROUNDED_UP)
def test_what_was_rounded_up(tmp_path: pathlib.Path, body: str, wanted: str | None) -> None:
    """Nearest values of the size that is met; another rule than what was rounded down."""
    source = f"{HEAD}        return {body}  # fails\n"
    after = rewritten(tmp_path, "sizes_of_skip", source, "# fails", message=ODD, options={"rounded_up": True})
    assert after == (source.replace(body, wanted) if wanted else source)


@pytest.mark.torch
@pytest.mark.parametrize("size", [(9, 9), (17, 5), (9, 10)])
def test_the_nearest_values_are_those_that_are_cut_off(size: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(2, 3, (size[0] + 1) // 2, (size[1] + 1) // 2)
    doubled = torch.nn.functional.interpolate(x, scale_factor=2)[..., : size[0], : size[1]]
    assert torch.equal(torch.nn.functional.interpolate(x, size=size), doubled)
