"""A table has a row for the code that is given to what is in no vocabulary."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = "from torch import nn\n"
OWN = """class Vocabulary:
    def __init__(self, words):
        self.codes = {w: i for i, w in enumerate(words)}
        print(len(self.codes), "words")

    def __len__(self):
        return len(self.codes)

    def encode(self, word):
        return self.codes.get(word, len(self.codes))


out = table(rows)
"""
PLAIN = """codes = {w: i for i, w in enumerate(words)}
table = nn.Embedding(len(codes), 8)
rows = [codes.get(w, len(codes)) for w in text]
out = table(rows)
"""
WRONG = {
    "an object's length": (OWN, ["return len(self.codes) + 1"]),
    "in place": (PLAIN, ["table = nn.Embedding(len(codes) + 1, 8)"]),
}
RIGHT = {
    "counted": PLAIN.replace("Embedding(len(codes)", "Embedding(len(codes) + 1"),
    "another default": PLAIN.replace("get(w, len(codes))", "get(w, 0)"),
    "another vocabulary": PLAIN.replace("Embedding(len(codes)", "Embedding(len(words)"),
    "two tables": PLAIN + "other = nn.Embedding(len(codes), 4)\n",
}


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_the_last_code_has_a_row(source: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "row_for_default", HEAD + source, "out = table", message="index out of range in self")
    assert changed_lines(HEAD + source, after) == wanted


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_lengths_stay(source: str, tmp_path: pathlib.Path) -> None:
    whole = HEAD + source
    assert rewritten(tmp_path, "row_for_default", whole, "out = table", message="index out of range in self") == whole


def test_a_class_that_no_list_names_is_shown_only(tmp_path: pathlib.Path) -> None:
    """It may be a class, be ignored, or be one of the others: its author knows."""
    program = write(tmp_path, {"train.py": HEAD + OWN})
    for message, wanted in (("Target 5 is out of bounds.", "display"), ("index out of range in self", None)):
        incident = failed({"train.py": line_of(HEAD + OWN, "out = table")}, message)
        found = best("row_for_default", program, incident=incident)
        assert found is not None
        assert found.applicability == wanted
