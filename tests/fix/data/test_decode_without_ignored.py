"""Ids that a tokenizer decodes have no -100 in them."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "number too small to fit in target type\nwhile processing 'ids'"
CASES = {
    "labels with numpy": (
        "import numpy as np\n", "texts = tokenizer.batch_decode(pred.label_ids, skip_special_tokens=True)",
        "texts = tokenizer.batch_decode(np.where(pred.label_ids < 0, tokenizer.pad_token_id, pred.label_ids), skip_special_tokens=True)",
    ),
    "without numpy": (
        "", "texts = self.tokenizer.batch_decode(labels)",
        "texts = self.tokenizer.batch_decode([[one for one in row if one >= 0] for row in labels])",
    ),
    "one row": ("", "text = tokenizer.decode(row)", "text = tokenizer.decode([one for one in row if one >= 0])"),
}  # fmt: skip


@pytest.mark.parametrize(("head", "line", "wanted"), CASES.values(), ids=CASES)
def test_the_padding_takes_its_place(head: str, line: str, wanted: str, tmp_path: pathlib.Path) -> None:
    source = f"{head}{line}\n"
    assert changed_lines(source, rewritten(tmp_path, "decode_without_ignored", source, line, message=MESSAGE)) == [
        wanted
    ]
    assert rewritten(tmp_path, "decode_without_ignored", source, line, message="it failed") == source
