"""A mask of each sample is repeated for each head, sample by sample."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

TEXT = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = MADE

    def forward(self, x, near):
        return CALL


torch.manual_seed(0)
net = Block()
x = torch.randn(3, 4, 8)
near = torch.rand(3, 4, 4) < 0.4
near = near & ~torch.eye(4, dtype=torch.bool)
out = net(x, near)
"""
FORMS = {
    "an attention": (
        "nn.MultiheadAttention(8, 2, batch_first=True)",
        "self.attn(x, x, x, attn_mask=near)[0]",
        "return self.attn(x, x, x, attn_mask=near.repeat_interleave(self.attn.num_heads, dim=0))[0]",
    ),
    "a layer round it": (
        "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)",
        "self.attn(x, src_mask=near)",
        "return self.attn(x, src_mask=near.repeat_interleave(2, dim=0))",
    ),
    "an argument without a name": (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 1)",
        "self.attn(x, near)",
        "return self.attn(x, near.repeat_interleave(2, dim=0))",
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize(("made", "call", "wanted"), FORMS.values(), ids=FORMS)
def test_each_sample_keeps_its_mask(tmp_path: pathlib.Path, made: str, call: str, wanted: str) -> None:
    """The program fails before; after, what a sample gives does not depend on the masks of others."""
    torch = pytest.importorskip("torch")
    text = TEXT.replace("MADE", made).replace("CALL", call)
    with pytest.raises(RuntimeError, match="3D attn_mask") as raised:
        exec(compile(text, "before", "exec"), {})  # noqa: S102
    after = rewritten(tmp_path, "mask_of_each_head", text, "self.attn(", message=str(raised.value))
    assert changed_lines(text, after) == [wanted]
    space: dict = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    net, x, near = space["net"], space["x"], space["near"]
    alone = torch.cat([net(x[i : i + 1], near[i : i + 1]) for i in range(3)])
    assert torch.allclose(space["out"], alone, atol=1e-6)


@pytest.mark.parametrize(
    "message",
    [
        "The shape of the 3D attn_mask is torch.Size([3, 4, 5]), but should be (6, 4, 4).",
        "The shape of the 3D attn_mask is torch.Size([4, 4, 4]), but should be (6, 4, 4).",
        "The shape of the 2D attn_mask is torch.Size([3, 4]), but should be (4, 4).",
    ],
)
def test_masks_of_another_kind_stay(tmp_path: pathlib.Path, message: str) -> None:
    """Other queries or keys, or a number that no count of heads explains."""
    made, call, _ = FORMS["an attention"]
    text = TEXT.replace("MADE", made).replace("CALL", call)
    assert rewritten(tmp_path, "mask_of_each_head", text, "self.attn(", message=message) == text
