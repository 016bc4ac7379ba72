"""A half-precision operand beside float32 goes up, where the live tensors say which it is."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nimport torch.nn.functional as F\n"
SAMPLED = HEAD + "def sample(img, grid):\n    return F.grid_sample(img, grid, align_corners=True)\n"
HALF = {"img": "[2, 1, 8, 8] bfloat16", "grid": "[2, 4, 4, 2] float32"}


def test_it_goes_up(tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "widen_operand", SAMPLED, "F.grid_sample", tensors=HALF)
    assert changed_lines(SAMPLED, after) == ["return F.grid_sample(img.float(), grid, align_corners=True)"]
    assert rewritten(tmp_path, "widen_operand", after, "F.grid_sample", tensors=HALF) == after


@pytest.mark.parametrize(
    "tensors",
    [{}, {**HALF, "grid": "[2, 4, 4, 2] bfloat16"}, {**HALF, "img": "[2, 1, 8, 8] float32"}, {"img": HALF["img"]}],
    ids=["unseen", "both half", "both float", "one unseen"],
)
def test_nothing(tensors: dict[str, str], tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "widen_operand", SAMPLED, "F.grid_sample", tensors=tensors) == SAMPLED
