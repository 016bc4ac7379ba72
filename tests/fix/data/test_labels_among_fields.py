"""The labels join the fields that a batch is made of."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, diff_lines, failed, rewritten, write

MESSAGE = (
    "The model did not return a loss from the inputs, only the following keys: logits. "
    "For reference, the inputs it received are input_ids,attention_mask."
)
COLUMNS = """rows = rows.map(lambda row: {**tokenizer(row["text"]), "labels": row["stars"]})
rows.set_format("torch", columns=["input_ids", "attention_mask"])
trainer.train()
"""
CONFIGURED = """import yaml
cfg = yaml.safe_load(open("config.yaml"))
rows = [{"input_ids": [1], "attention_mask": [1], "labels": [1]}]
batch = {name: [row[name] for row in rows] for name in cfg["fields"]}
trainer.train()
"""
OTHERS = {
    "no labels in the rows": COLUMNS.replace('"labels": ', "**"),
    "other fields": COLUMNS.replace('"attention_mask"]', '"token_type_ids"]'),
    "labels among them": COLUMNS.replace('"attention_mask"]', '"attention_mask", "labels"]'),
    "two such lists": COLUMNS + 'names = ("input_ids", "attention_mask")\n',
}


def test_a_list_of_columns(tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "labels_among_fields", COLUMNS, message=MESSAGE)
    assert diff_lines(COLUMNS, after)[1:] == [
        '+rows.set_format("torch", columns=["input_ids", "attention_mask", "labels"])'
    ]
    assert rewritten(tmp_path, "labels_among_fields", after, message=MESSAGE) == after


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ("fields: [input_ids, attention_mask]\n", "fields: [input_ids, attention_mask, labels]\n"),
        ('fields: ["input_ids", "attention_mask"]\n', 'fields: ["input_ids", "attention_mask", "labels"]\n'),
    ],
)
def test_a_configuration(before: str, wanted: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "config.yaml").write_text(before)
    program = write(tmp_path, {"train.py": CONFIGURED})
    incident = failed({"train.py": 5}, message=MESSAGE)
    proposal = best("labels_among_fields", program, incident=incident)
    assert proposal is not None
    assert splice(before, proposal.edits) == wanted


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_what_is_not_left_out(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "labels_among_fields", source, message=MESSAGE) == source
