"""A transformers model that is differentiated twice is made with attention in plain operations."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SAID = "derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward is not implemented"
MADE = """from transformers import BertConfig, BertModel
config = BertConfig(hidden_size=8{more})
model = BertModel(config)
"""
LOADED = """from transformers import AutoModel, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("x")
model = AutoModel.from_pretrained("x")
"""
WRONG = {
    "a configuration": (MADE.format(more=""), 'config = BertConfig(hidden_size=8, attn_implementation="eager")'),
    "a model that is loaded": (LOADED, 'model = AutoModel.from_pretrained("x", attn_implementation="eager")'),
}
RIGHT = {
    "another message": (MADE.format(more=""), "derivative for aten::_cdist_backward is not implemented"),
    "chosen already": (MADE.format(more=", attn_implementation='sdpa'"), SAID),
    "options from elsewhere": (MADE.format(more=", **options"), SAID),
    "no transformers": ("from torch import nn\nnet = nn.TransformerEncoderLayer(8, 2)\n", SAID),
}


@pytest.mark.parametrize(("source", "line"), WRONG.values(), ids=WRONG)
def test_attention_is_eager(source: str, line: str, tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do."""
    after = rewritten(tmp_path, "eager_attention", source, message=SAID)
    assert [one for one in diff_lines(source, after) if one[0] == "+"] == [f"+{line}"]
    assert rewritten(tmp_path, "eager_attention", after, message=SAID) == after


@pytest.mark.parametrize(("source", "message"), RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(source: str, message: str, tmp_path: pathlib.Path) -> None:
    """What fails otherwise, what chooses by itself, and other libraries."""
    assert rewritten(tmp_path, "eager_attention", source, message=message) == source
