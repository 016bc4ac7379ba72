"""A mask of each position by each, and a shorter text; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import mended, run  # noqa: E402

HEAD = """import torch
import torch.nn.functional as F
torch.manual_seed(0)


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(6, 6).tril().view(1, 1, 6, 6))
        self.register_buffer("plain", torch.nn.Transformer.generate_square_subsequent_mask(6))
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x):
        scores = (x @ x.mT)[:, None]
        LINE


out = Attention()(torch.randn(2, 4, 8))
"""
CURED = {
    "filled by it": (
        'return scores.masked_fill(self.mask == 0, float("-inf"))',
        'return scores.masked_fill(self.mask[..., : scores.size(2), : scores.size(2)] == 0, float("-inf"))',
    ),
    "added": ("return scores + self.plain", "return scores + self.plain[..., : scores.size(2), : scores.size(2)]"),
    "of a layer": (
        "return self.layer(x, src_mask=self.plain)",
        "return self.layer(x, src_mask=self.plain[..., : x.size(1), : x.size(1)])",
    ),
    "of fused attention": (
        "return F.scaled_dot_product_attention(x, x, x, attn_mask=self.plain)",
        "return F.scaled_dot_product_attention(x, x, x, attn_mask=self.plain[..., : x.size(1), : x.size(1)])",
    ),
}
LEFT = {
    "no square": "return scores + torch.zeros(6)",
    "a longer text": "return torch.cat([scores, scores], -1).repeat(1, 1, 2, 1) + self.plain",
    "nothing of the length": "return self.plain + torch.zeros(4, 4)",
}


@pytest.mark.parametrize(("broken", "fixed"), CURED.values(), ids=CURED)
def test_the_beginning_is_taken(broken: str, fixed: str, tmp_path: pathlib.Path) -> None:
    """Of the mask, in both its axes; what failed runs then."""
    source, wanted = HEAD.replace("LINE", broken), HEAD.replace("LINE", fixed)
    assert mended("cut_square_mask", source, tmp_path) == wanted
    assert run(wanted, tmp_path / "fixed.py")["out"].shape[-2] == 4


@pytest.mark.parametrize("line", LEFT.values(), ids=LEFT)
def test_others_are_left_alone(line: str, tmp_path: pathlib.Path) -> None:
    """Where no square of the module's is too large, or no tensor says how long the text is."""
    source = HEAD.replace("LINE", line)
    assert mended("cut_square_mask", source, tmp_path) == source
