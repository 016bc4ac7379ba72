"""What a data set's `map` tokenizes is padded to one length, where the call has one."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "stack expects each tensor to be equal size, but got [12] at entry 0 and [15] at entry 9"
PROGRAM = """def encode(rows):
    return tokenizer(rows["text"], PADDING)


data = data.map(MAPPED, batched=True)
"""


def program(padding: str, mapped: str = "encode") -> str:
    return PROGRAM.replace("PADDING", padding).replace("MAPPED", mapped)


@pytest.mark.parametrize("word", ["True", '"longest"'])
def test_one_length(word: str, tmp_path: pathlib.Path) -> None:
    source = program(f"padding={word}, truncation=True, max_length=64")
    after = rewritten(tmp_path, "pad_to_max_length", source, message=MESSAGE)
    assert changed_lines(source, after) == [
        'return tokenizer(rows["text"], padding="max_length", truncation=True, max_length=64)'
    ]
    assert rewritten(tmp_path, "pad_to_max_length", after, message=MESSAGE) == after
    assert rewritten(tmp_path, "pad_to_max_length", source, message="it failed") == source


@pytest.mark.parametrize(
    "source", [program("padding=True"), program("padding=True, max_length=64", "other"), program("max_length=64")]
)
def test_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "pad_to_max_length", source, message=MESSAGE) == source
