"""A mask in the other sense than attention takes is turned round; the right ones stay."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, failed, rewritten

HEAD = """import torch
import torch.nn.functional as F
from torch import nn
attention, net = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 8)
shown = torch.arange(5)[None, :] < lengths[:, None]
hidden = ids == 0
"""
INVERTED = {
    "of a module": (
        "out, _ = attention(x, x, x, key_padding_mask=shown)",
        "out, _ = attention(x, x, x, key_padding_mask=~shown)",
    ),
    "of a layer": ("out = layer(x, src_key_padding_mask=ids != 0)", "out = layer(x, src_key_padding_mask=~(ids != 0))"),
    "fused": (
        "out = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden[:, None, None])",
        "out = F.scaled_dot_product_attention(q, k, v, attn_mask=~hidden[:, None, None])",
    ),
    "filled": (
        'scores = scores.masked_fill(shown.unsqueeze(1), float("-inf"))',
        'scores = scores.masked_fill(~shown.unsqueeze(1), float("-inf"))',
    ),
}
RIGHT = {
    "hides": "out, _ = attention(x, x, x, key_padding_mask=hidden)",
    "turned round already": "out = layer(x, src_key_padding_mask=~shown)",
    "fused": "out = F.scaled_dot_product_attention(q, k, v, attn_mask=shown[:, None, None])",
    "filled": "scores = scores.masked_fill(shown[:, None] == 0, -torch.inf)",
    "filled with 0": "x = x.masked_fill(shown, 0.0)",
    "unknown": "out, _ = attention(x, x, x, key_padding_mask=load())",
}


@pytest.mark.parametrize(("line", "wanted"), INVERTED.values(), ids=INVERTED)
def test_it_is_turned_round(tmp_path: pathlib.Path, line: str, wanted: str) -> None:
    """Where it is given."""
    source = f"{HEAD}{line}\nloss.backward()\n"
    after = rewritten(tmp_path, "sense_of_mask", source, "loss.backward()", message="the loss is nan")
    assert changed_lines(source, after) == [wanted]


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT)
def test_right_masks_stay(tmp_path: pathlib.Path, line: str) -> None:
    """And those of which nothing is known."""
    source = f"{HEAD}{line}\nloss.backward()\n"
    assert rewritten(tmp_path, "sense_of_mask", source, "loss.backward()", message="the loss is nan") == source


def test_an_inverted_mask_is_no_empty_row(tmp_path: pathlib.Path) -> None:
    """Zeros for hidden rows would let it train on the padding alone."""
    line = INVERTED["of a module"][0]
    source = f"{HEAD}{line}\nloss.backward()\n"
    assert rewritten(tmp_path, "attention_without_weights", source, "loss.backward()") == source
    filled = f'{HEAD}def attend(scores):\n    scores = scores.masked_fill(MASK, float("-inf"))\n    return scores.softmax(-1)\nattend(net(x)).sum().backward()\n'
    inverted, right = filled.replace("MASK", "shown"), filled.replace("MASK", "hidden")
    assert rewritten(tmp_path, "finite_mask", inverted, "backward()") == inverted
    assert rewritten(tmp_path, "finite_mask", right, "backward()") != right
