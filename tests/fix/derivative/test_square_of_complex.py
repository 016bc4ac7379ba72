"""A loss that is the square of complex numbers; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import is_mended, mended  # noqa: E402

HEAD = """import torch
torch.manual_seed(0)
weight = torch.rand(5, dtype=torch.cfloat, requires_grad=True)
wanted = torch.rand(5, dtype=torch.cfloat)
"""
END = "\nloss.backward()\nout = weight.grad.abs()"
WAYS = {
    "a power": ("loss = ((weight - wanted) ** 2).mean()", "loss = ((weight - wanted).abs() ** 2).mean()"),
    "beside a real penalty": (
        "scale = torch.zeros(3, requires_grad=True)\nloss = ((weight - wanted) ** 2).mean() + (scale ** 2).sum()",
        "loss = ((weight - wanted).abs() ** 2).mean() + (scale ** 2).sum()",
    ),
    "a method": ("error = weight - wanted\nloss = error.pow(2).sum() / 5", "loss = error.abs().pow(2).sum() / 5"),
}


@pytest.mark.parametrize(("body", "line"), WAYS.values(), ids=WAYS)
def test_both_parts_are_made_smaller(tmp_path: pathlib.Path, body: str, line: str) -> None:
    """The gradient is that of the real and the imaginary part's squares."""
    equal = "(2 * (weight - wanted) / 5).abs().detach()"
    assert is_mended("square_of_complex", HEAD, body + END, line, equal, tmp_path)


def test_another_number_stays(tmp_path: pathlib.Path) -> None:
    """Which part or size of a plain mean is meant is the author's."""
    source = f"{HEAD}loss = (weight * wanted).mean(){END}\n"
    assert mended("square_of_complex", source, tmp_path) == source
