"""A classifier gets as many classes as the names by which its labels are counted."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, write

TRAIN = """from transformers import BertConfig, BertForSequenceClassification
from data import Tickets

def build(size):
    return BertForSequenceClassification(MADE)
"""
INDEX = """QUEUES = ["billing", "delivery", "returns"]

def row(queue):
    return {"text": queue, "label": QUEUES.index(queue)}
"""
NUMBERED = """NAMES = read_names()
IDS = {name: at for at, name in enumerate(NAMES)}

def row(tags):
    labels = [IDS[tag] for tag in tags]
    return {"labels": labels}
"""
FIRST = "from data import QUEUES, Tickets"
CASES = {
    "a configuration that says nothing": (INDEX, "BertConfig(vocab_size=size)", 2, [FIRST, "BertConfig(vocab_size=size, num_labels=len(QUEUES))"]),
    "a configuration with too few": (INDEX, "BertConfig(num_labels=2)", 2, [FIRST, "BertConfig(num_labels=len(QUEUES))"]),
    "a dictionary of numbers": (NUMBERED, "BertConfig()", 4, ["from data import IDS, Tickets", "BertConfig(num_labels=len(IDS))"]),
    "names are given": (INDEX, "BertConfig(id2label=dict(enumerate('abc')))", 3, []),
    "enough classes": (INDEX, "BertConfig(num_labels=3)", 2, []),
    "positions that are no labels": (INDEX.replace('"label"', '"position"'), "BertConfig()", 2, []),
}  # fmt: skip


@pytest.mark.parametrize(("data", "made", "target", "wanted"), CASES.values(), ids=CASES)
def test_the_classes_of_a_classifier(
    tmp_path: pathlib.Path, data: str, made: str, target: int, wanted: list[str]
) -> None:
    """The count is read from the module that has the names, and from there imported."""
    source = TRAIN.replace("MADE", made)
    program = write(tmp_path, {"train.py": source, "data.py": data})
    proposal = best("count_of_labels", program, fields={"target": target})
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    lines = [line.replace("return BertForSequenceClassification(", "")[: -1 if "return" in line else None]
             for line in changed_lines(source, after)]  # fmt: skip
    assert lines == wanted
