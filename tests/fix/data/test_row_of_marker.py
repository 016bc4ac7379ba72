"""A code behind the last one, which stands for none of them, has a row of its own."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import torch
from torch import nn
NULL = {count}
class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.label = nn.Embedding(classes, 8)
        self.out = nn.Linear(8, classes)
    def forward(self, y):
        return self.out(self.label(y))
cfg = dict(classes=5)
net = Net(cfg["classes"])
y = torch.randint(0, cfg["classes"], (16,))
"""
FORMS = {
    "masked": HEAD.format(count=5) + 'net(y.masked_fill(torch.rand(16) < 0.5, cfg["classes"]))\n',
    "a constant": HEAD.format(count=5).replace('Net(cfg["classes"])', "Net(5)") + "y[::2] = NULL\nnet(y)\n",
    "chosen": HEAD.format(count=5)
    + 'drop = torch.rand(16) < 0.5\nnet(torch.where(drop, torch.full_like(y, cfg["classes"]), y))\n',
}
HIDDEN = """import torch
from torch import nn
class Dropper:
    def __init__(self, null, rate):
        self.rate, self.null = rate, null
    def __call__(self, y):
        return y.masked_fill(torch.rand(len(y)) < self.rate, self.null)
class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = nn.Embedding(num_embeddings=len(words), embedding_dim=8)
    def forward(self, y):
        return self.words(y)
WORDS = ["a", "b", "c"]
net, drop = Net(WORDS), Dropper(len(WORDS), 0.5)
net(drop(torch.zeros(16, dtype=torch.long)))
"""


@pytest.mark.parametrize("source", FORMS.values(), ids=FORMS)
def test_the_table_has_one_more_row(source: str, tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "row_of_marker", source, at="self.out(self.label(y))")
    assert changed_lines(source, after) == ["self.label = nn.Embedding(classes + 1, 8)"]


def test_the_table_is_told(tmp_path: pathlib.Path) -> None:
    """With what is written among the codes; where older weights do not fit any more, that is said."""
    program = write(tmp_path, {"train.py": FORMS["masked"]})
    at = line_of(FORMS["masked"], "self.out(self.label(y))")
    found = best("row_of_marker", program, incident=failed({"train.py": at}))
    assert found is not None
    assert (found.culprit.line, found.culprit.why) == (
        line_of(FORMS["masked"], "nn.Embedding"),
        'has no row for `cfg["classes"]`, which is written among the codes',
    )


@pytest.mark.parametrize(
    "source",
    [
        FORMS["masked"].replace('cfg["classes"]))\n', "4))\n"),
        FORMS["masked"].replace("nn.Embedding(classes, 8)", "nn.Embedding(classes + 1, 8)"),
        FORMS["a constant"].replace("NULL = 5", "NULL = 900"),
        HEAD.format(count=5) + "y[0] = 7\nnet(y)\n",
        HEAD.format(count=4).replace('cfg["classes"]', "5") + "scale = torch.full((3,), 5)\nnet(y)\n",
    ],
    ids=["a class", "a row more", "another number", "a label of the data", "a number that measures"],
)
def test_others_are_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "row_of_marker", source, at="self.out(self.label(y))") == source


def test_a_number_that_is_written_out(tmp_path: pathlib.Path) -> None:
    """`5` becomes `6`; a class may hold the marker."""
    source = HIDDEN.replace("num_embeddings=len(words)", "num_embeddings=3").replace("self.null)", "self.NULL)")
    source = source.replace("class Dropper:\n", "class Dropper:\n    NULL = 3\n")
    after = rewritten(tmp_path, "row_of_marker", source, at="return self.words(y)")
    assert changed_lines(source, after) == ["self.words = nn.Embedding(num_embeddings=4, embedding_dim=8)"]


def test_through_parameters_and_attributes(tmp_path: pathlib.Path) -> None:
    """`len(WORDS)` and `len(words)` are one count by what both are given."""
    after = rewritten(tmp_path, "row_of_marker", HIDDEN, at="return self.words(y)")
    assert changed_lines(HIDDEN, after) == ["self.words = nn.Embedding(num_embeddings=len(words) + 1, embedding_dim=8)"]


CONFIGURED = """from transformers import BertConfig, BertForMaskedLM
VOCAB = 60
ids[hidden] = MARKER
model = BertForMaskedLM(BertConfig(hidden_size=8, vocab_size=VOCAB))
model(input_ids=ids, labels=labels)
"""


@pytest.mark.parametrize(
    ("marker", "seen", "wanted"),
    [
        ("VOCAB", "60 of 60, from 5", ["model = BertForMaskedLM(BertConfig(hidden_size=8, vocab_size=VOCAB + 1))"]),
        ("VOCAB", "71 of 60, from 5", []),
        ("4", "60 of 60, from 5", []),
    ],
)
def test_a_vocabulary_of_transformers(marker: str, seen: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """The configuration has the count; another number than the first beyond it is no marker."""
    source = CONFIGURED.replace("MARKER", marker)
    after = rewritten(tmp_path, "row_of_marker", source, "model(input_ids", facts={"live_refused_index": seen})
    assert changed_lines(source, after) == wanted
