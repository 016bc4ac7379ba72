"""Inputs of `gradcheck` are made in float64."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch.autograd import gradcheck\n\n"
WAYS = {
    "in place": (
        "gradcheck(f, (torch.randn(4, requires_grad=True),))\n", "gradcheck",
        ["gradcheck(f, (torch.randn(4, requires_grad=True, dtype=torch.float64),))"],
    ),
    "by their names": (
        "x = torch.rand(3, requires_grad=True)\nw = torch.rand(3)\nassert gradcheck(f, (x, w), eps=1e-6)\n", "assert",
        ["x = torch.rand(3, requires_grad=True, dtype=torch.float64)", "w = torch.rand(3, dtype=torch.float64)"],
    ),
    "given twice, beside an index": (
        "x, i = torch.rand(3, requires_grad=True), torch.tensor([0, 1])\ngradcheck(f, (x, x, i))\n", "gradcheck(",
        ["x, i = torch.rand(3, requires_grad=True, dtype=torch.float64), torch.tensor([0, 1])"],
    ),
    "a dtype is given": ("gradcheck(f, (torch.randn(4, dtype=torch.float64, requires_grad=True),))\n", "gradcheck(", []),
    "another line failed": ("x = torch.rand(3)\nf(x)\ngradcheck(f, (x,))\n", "f(x)", []),
}  # fmt: skip


@pytest.mark.parametrize(("body", "at", "wanted"), WAYS.values(), ids=WAYS)
def test_inputs_of_the_check(body: str, at: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """Those whose making is seen, where no dtype is said."""
    at = body.splitlines()[0] if at == "gradcheck" else at
    assert changed_lines(HEAD + body, rewritten(tmp_path, "double_for_gradcheck", HEAD + body, at)) == wanted
