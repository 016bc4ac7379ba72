"""The outputs of a model of transformers that are unpacked are a tuple."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "dropout(): argument 'input' (position 1) must be Tensor, not str"
SOURCE = """from torch import nn
from transformers import AutoModel, BertConfig, BertModel


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = MADE
        self.drop = nn.Dropout(0.1)

    def forward(self, ids, mask):
        _, pooled = self.bert(ids, mask)
        return self.drop(pooled)
"""
MADE = ("BertModel(BertConfig())", 'BertModel.from_pretrained("bert")', 'AutoModel.from_pretrained("bert")')
RIGHT = {
    "told": SOURCE.replace("(ids, mask)\n        return", "(ids, mask, return_dict=False)\n        return"),
    "not unpacked": SOURCE.replace("_, pooled", "pooled"),
    "another model": SOURCE.replace("MADE", "nn.LSTM(3, 3)"),
}


@pytest.mark.parametrize("made", MADE)
def test_a_tuple_is_asked_for(made: str, tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace("MADE", made)
    after = rewritten(tmp_path, "unpacked_outputs", source, "return self.drop", message=MESSAGE)
    assert changed_lines(source, after) == ["_, pooled = self.bert(ids, mask, return_dict=False)"]
    assert rewritten(tmp_path, "unpacked_outputs", source, "return self.drop", message="it failed") == source


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_outputs_stay(source: str, tmp_path: pathlib.Path) -> None:
    source = source.replace("MADE", MADE[0])
    assert rewritten(tmp_path, "unpacked_outputs", source, "return self.drop", message=MESSAGE) == source
