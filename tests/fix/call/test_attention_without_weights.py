"""Masked attention is computed without the weights that nobody reads."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch import nn\natt = nn.MultiheadAttention(8, 2)\n"
RIGHT = {
    "no mask": (HEAD + "out, _ = att(x, x, x)\n", "", {}),
    "weights that are read": (HEAD + "out, weights = att(x, x, x, key_padding_mask=m)\n", "", {}),
    "said already": (HEAD + "out, _ = att(x, x, x, key_padding_mask=m, need_weights=False)\n", "", {}),
    "another class": (HEAD + "mine = Attention(8)\nout, _ = mine(x, x, x, key_padding_mask=m)\n", "", {}),
}
WRONG = {
    "unpacked": (
        HEAD + "out, _ = att(x, x, x, key_padding_mask=m)\n",
        "",
        {},
        ["out, _ = att(x, x, x, key_padding_mask=m, need_weights=False)"],
    ),
    "indexed": (
        HEAD + "out = att(x, x, x, attn_mask=m)[0]\n",
        "",
        {},
        ["out = att(x, x, x, attn_mask=m, need_weights=False)[0]"],
    ),
    "in a module": (
        "import torch\nfrom torch import nn\n\n\nclass Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.att = nn.MultiheadAttention(8, 2)\n\n"
        "    def forward(self, x, m):\n        return self.att(x, x, x, key_padding_mask=m)[0]\n",
        "",
        {},
        ["return self.att(x, x, x, key_padding_mask=m, need_weights=False)[0]"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Attention without a mask, with weights that are read, or of another class is left alone."""
    assert rewritten(tmp_path, "attention_without_weights", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The weights are not asked for; a second time nothing is left to do."""
    after = rewritten(tmp_path, "attention_without_weights", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert (
        rewritten(tmp_path, "attention_without_weights", after, None if at not in after else at or None, **given)
        == after
    )
