"""A prompt's length is that of its tokens, where a part of the tokenized text is measured in characters."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "from transformers import AutoTokenizer\ntokenizer = AutoTokenizer.from_pretrained(name)\n\n\ndef encode(row):\n"
CURED = {
    "an f-string": (
        'prompt = row["q"]\nids = tokenizer(f"{prompt} {row[\'a\']}")["input_ids"]\nlabels = [-100] * len(prompt) + ids[len(prompt):]\nreturn labels',
        ['labels = [-100] * len(tokenizer(prompt)["input_ids"]) + ids[len(tokenizer(prompt)["input_ids"]):]'],
    ),
    "a sum, without special tokens": (
        'text = "Q: " + row["q"]\nids = tokenizer.encode(text + row["a"], add_special_tokens=False)\nn = len(text)\nreturn [-100] * n + ids[n:]',
        ["n = len(tokenizer.encode(text, add_special_tokens=False))"],
    ),
}
LEFT = {
    "a batch of texts": 'texts = row["text"]\nids = tokenizer(texts, padding=True)["input_ids"]\nreturn ids, len(texts)',
    "tokens": 'prompt = tokenizer(row["q"])["input_ids"]\nids = tokenizer(row["q"] + row["a"])["input_ids"]\nreturn [-100] * len(prompt) + ids[len(prompt):]',
    "another function": 'ids = tokenizer(f"{row} a")["input_ids"]\nreturn ids\n\n\ndef size(row):\n    return len(row)',
}


@pytest.mark.parametrize(("body", "wanted"), CURED.values(), ids=CURED)
def test_it_is_counted_in_tokens(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    """By the tokenizer's call that makes those of the whole."""
    source = HEAD + "".join(f"    {line}\n" for line in body.split("\n"))
    assert changed_lines(source, rewritten(tmp_path, "prompt_in_tokens", source)) == wanted


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_others_stay(tmp_path: pathlib.Path, body: str) -> None:
    """Lists of texts, tokens, and what another function measures."""
    source = HEAD + "".join(f"    {line}\n" for line in body.split("\n"))
    assert rewritten(tmp_path, "prompt_in_tokens", source) == source
