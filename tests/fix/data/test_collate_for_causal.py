"""A causal language model that is given tokens alone gets its labels of the collator."""

from __future__ import annotations

import pathlib

import pytest

from explainer.model.incident import INPUTS_COLUMN
from tests.fix.rewriting import best, changed_lines, failed, rewritten, write

HEAD = """from transformers import AutoTokenizer, DataCollatorWithPadding, GPT2LMHeadModel, Trainer, TrainingArguments
tok = AutoTokenizer.from_pretrained("gpt2")
model = GPT2LMHeadModel.from_pretrained("gpt2")
"""
PADS = (
    HEAD
    + "collator = DataCollatorWithPadding(tok, pad_to_multiple_of=8)\nTrainer(model=model, data_collator=collator)\n"
)
NONE = HEAD + "Trainer(model=model, train_dataset=rows, processing_class=tok)\n"
IMPORT = HEAD.splitlines()[0].replace(
    "DataCollatorWithPadding", "DataCollatorForLanguageModeling, DataCollatorWithPadding"
)
FACT = {INPUTS_COLUMN: "train_dataset"}


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (PADS, "collator = DataCollatorForLanguageModeling(tok, pad_to_multiple_of=8, mlm=False)"),
        (
            NONE,
            "Trainer(model=model, train_dataset=rows, processing_class=tok, "
            "data_collator=DataCollatorForLanguageModeling(tok, mlm=False))",
        ),
    ],
    ids=["one that pads", "none"],
)
def test_it_makes_labels(tmp_path: pathlib.Path, source: str, wanted: str) -> None:
    """The name is imported beside those that are there."""
    after = rewritten(tmp_path, "collate_for_causal", source, facts=FACT)
    assert changed_lines(source, after) == [IMPORT, wanted]


@pytest.mark.parametrize("source", [PADS, NONE], ids=["one that pads", "none"])
def test_nothing_without_what_the_live_trainer_told(tmp_path: pathlib.Path, source: str) -> None:
    """A column that was dropped may say what is to be learned."""
    assert rewritten(tmp_path, "collate_for_causal", source) == source


def test_nothing_where_no_tokenizer_is_given(tmp_path: pathlib.Path) -> None:
    """Which of several tokenizers pads is not known."""
    source = HEAD + "Trainer(model=model, train_dataset=rows)\n"
    assert rewritten(tmp_path, "collate_for_causal", source, facts=FACT) == source


TABLE = """import json
from transformers import DataCollatorForLanguageModeling, DataCollatorWithPadding
COLLATORS = {}
def register(name):
    def add(fn):
        COLLATORS[name] = fn
        return fn
    return add
@register("padded")
def padded(tok):
    return DataCollatorWithPadding(tok)
@register("masked")
def masked(tok):
    return DataCollatorForLanguageModeling(tok, mlm=True)
@register("next")
def causal(tok):
    return DataCollatorForLanguageModeling(tok, mlm=False)
cfg = json.load(open("run.json"))
collator = COLLATORS[cfg["collate"]](tok)
"""


def test_the_word_that_chooses_it(tmp_path: pathlib.Path) -> None:
    """The entry of the table that makes labels of all tokens is named in the configuration file."""
    program = write(tmp_path, {"train.py": TABLE, "run.json": '{"collate": "padded"}\n'})
    found = best("collate_for_causal", program, incident=failed({"train.py": 1}, facts=FACT))
    assert found is not None
    (edit,) = found.edits
    assert pathlib.Path(edit.file).name == "run.json"
    assert edit.new.strip('"') == "next"
