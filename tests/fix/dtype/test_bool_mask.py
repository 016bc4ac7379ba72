"""A mask of integers for fused attention; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import is_mended, mended  # noqa: E402

HEAD = """import torch
import torch.nn.functional as F
torch.manual_seed(0)
q, ids = torch.rand(2, 4, 8), torch.tensor([[1, 2, 3, 0], [4, 5, 0, 0]])
"""
ATTEND = "out = F.scaled_dot_product_attention(q, q, q, attn_mask=mask[:, None])"


@pytest.mark.parametrize("dtype", ["torch.long", "torch.uint8", "torch.int32"])
def test_ones_are_looked_at(tmp_path: pathlib.Path, dtype: str) -> None:
    """As the same mask in bools says."""
    body = f"mask = (ids != 0).to({dtype})\n{ATTEND}"
    equal = "F.scaled_dot_product_attention(q, q, q, attn_mask=(ids != 0)[:, None])"
    assert is_mended("bool_mask", HEAD, body, ATTEND[:-1] + ".bool())", equal, tmp_path)


def test_what_is_added_to_scores_stays(tmp_path: pathlib.Path) -> None:
    """As bools it would hide what it shows."""
    source = f"{HEAD}mask = (ids == 0).long() * -10000\n{ATTEND}\n"
    assert mended("bool_mask", source, tmp_path) == source
