"""What an attribute is bound to anew gets the flag that it had."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch


class Points:
    def __init__(self):
        self.points = torch.rand(8, 2).requires_grad_(True)
        self.count = 8

    def refine(self, more):
        self.points = torch.cat([self.points, more]).detach()
        self.count = len(self.points)


(slope,) = torch.autograd.grad(net(cloud.points).sum(), cloud.points)
"""
MESSAGE = "One of the differentiated Tensors does not require grad"
RIGHT = {
    "flagged in both": SOURCE.replace(".detach()", ".detach().requires_grad_()"),
    "flagged behind": SOURCE.replace("        self.count = len", "        self.points.requires_grad_()\n        self.count = len"),
    "flagged nowhere": SOURCE.replace(".requires_grad_(True)", ""),
    "let go": SOURCE.replace("torch.cat([self.points, more]).detach()", "None"),
}  # fmt: skip


@pytest.mark.parametrize("made", ["torch.rand(8, 2).requires_grad_(True)", "torch.rand(8, 2, requires_grad=True)"])
def test_it_is_flagged_again(made: str, tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace("torch.rand(8, 2).requires_grad_(True)", made)
    after = rewritten(tmp_path, "flag_as_elsewhere", source, "torch.autograd.grad", message=MESSAGE)
    assert changed_lines(source, after) == [
        "self.points = torch.cat([self.points, more]).detach().requires_grad_(True)"
    ]


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_attributes_stay(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "flag_as_elsewhere", source, "torch.autograd.grad", message=MESSAGE) == source
