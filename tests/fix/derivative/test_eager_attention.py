"""A transformers model that is differentiated twice is made with attention in plain operations."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, diff_lines, failed, rewritten, write

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
    "another choice": (
        MADE.format(more=", attn_implementation='sdpa'"),
        "config = BertConfig(hidden_size=8, attn_implementation='eager')",
    ),
    "a model that is loaded": (LOADED, 'model = AutoModel.from_pretrained("x", attn_implementation="eager")'),
}
RIGHT = {
    "another message": (MADE.format(more=""), "derivative for aten::_cdist_backward is not implemented"),
    "a choice that is computed": (MADE.format(more=", attn_implementation=chosen"), SAID),
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


def test_a_choice_in_a_configuration_file(tmp_path: pathlib.Path) -> None:
    """The file's line is the guilty one, and is changed."""
    (tmp_path / "config.yaml").write_text("model:\n  hidden_size: 8\n  attn_implementation: sdpa\n")
    source = 'import yaml\ncfg = yaml.safe_load(open("config.yaml"))\n' + MADE.format(more=', **cfg["model"]')
    program = write(tmp_path, {"train.py": source})
    proposal = best("eager_attention", program, incident=failed(message=SAID))
    assert proposal is not None
    assert (pathlib.Path(proposal.culprit.file).name, proposal.culprit.line) == ("config.yaml", 3)
    assert [edit.new for edit in proposal.edits] == ["eager"]
