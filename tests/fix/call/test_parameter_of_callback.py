"""A callback of the Trainer takes the tokenizer by the name under which it is handed over."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """from transformers import TrainerCallback


class Sample(TrainerCallback):
    def on_evaluate(self, args, state, control, model, tokenizer, **kwargs):
        ids = tokenizer("a")["input_ids"]
        print(tokenizer.decode(ids))

    def on_log(self, args, state, control, tokenizer=None, **kwargs):
        pass
"""
MESSAGE = "Sample.on_evaluate() missing 1 required positional argument: 'tokenizer'"


def test_it_is_renamed(tmp_path: pathlib.Path) -> None:
    """In the handler that asks for it, and where it is read there."""
    after = rewritten(tmp_path, "parameter_of_callback", SOURCE, message=MESSAGE)
    assert changed_lines(SOURCE, after) == [
        "def on_evaluate(self, args, state, control, model, processing_class, **kwargs):",
        'ids = processing_class("a")["input_ids"]',
        "print(processing_class.decode(ids))",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (SOURCE, MESSAGE.replace("tokenizer", "optimizer")),
        (SOURCE.replace("(TrainerCallback)", "(Thing)"), MESSAGE),
        (SOURCE, "it failed"),
    ],
    ids=["another argument", "no callback", "another message"],
)
def test_others_stay(tmp_path: pathlib.Path, source: str, message: str) -> None:
    """What a Trainer does not hand over under another name is another matter."""
    assert rewritten(tmp_path, "parameter_of_callback", source, message=message) == source
