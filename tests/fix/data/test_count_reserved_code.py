"""A table of codes that begin at 1 gets a row for 0 too."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch import nn\nwords = ['a', 'b', 'a']\n"
TAIL = "ids = torch.tensor([vocab.get(word, 0) for word in words])\nout = table(ids)\n"
FROM_ONE = [
    "vocab = {word: i for i, word in enumerate(sorted(set(words)), start=1)}\n",
    "vocab = {word: i for i, word in enumerate(sorted(set(words)), 1)}\n",
    "vocab = {word: i + 1 for i, word in enumerate(sorted(set(words)))}\n",
    "vocab = {}\nfor word in words:\n    if word not in vocab:\n        vocab[word] = len(vocab) + 1\n",
]
RIGHT = {
    "codes from 0": "vocab = {word: i for i, word in enumerate(words)}\ntable = nn.Embedding(len(vocab), 4)\n",
    "shifted nowhere": "vocab = {word: i for i, word in enumerate(words)}\nprint(vocab['a'])\ntable = nn.Embedding(len(vocab), 4)\n",
    "two shifts": "vocab = {word: i for i, word in enumerate(words)}\nprint(vocab['a'] + 1, vocab['b'] + 2)\n"
    "table = nn.Embedding(len(vocab), 4)\n",
    "the row is counted": FROM_ONE[0] + "table = nn.Embedding(len(vocab) + 1, 4)\n",
    "another length": FROM_ONE[0] + "table = nn.Embedding(len(words), 4)\n",
    "two lengths, none of a table": FROM_ONE[0]
    + "count = len(vocab)\nprint(len(vocab))\ntable = nn.Embedding(int(4.0), 4)\n",
}


@pytest.mark.torch
@pytest.mark.parametrize("made", FROM_ONE)
@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("table = nn.Embedding(len(vocab), 4)\n", "table = nn.Embedding(len(vocab) + 1, 4)"),
        ("rows = len(vocab)\ntable = nn.Embedding(rows, 4)\n", "rows = len(vocab) + 1"),
        ("rows = len(vocab)\nprint(len(vocab))\ntable = nn.Embedding(rows, 4)\n", "rows = len(vocab) + 1"),
        ("print(len(vocab))\ntable = nn.Embedding(len(vocab), 4, padding_idx=0)\n", "table = nn.Embedding(len(vocab) + 1, 4, padding_idx=0)"),
    ],
)  # fmt: skip
def test_a_row_for_the_reserved_code(tmp_path: pathlib.Path, made: str, table: str, wanted: str) -> None:
    """The lookup fails before, and finds every code after; a second time nothing is left to do."""
    pytest.importorskip("torch")
    source = HEAD + made + table + TAIL
    with pytest.raises(IndexError, match="index out of range in self"):
        exec(compile(source, "before", "exec"), {})  # noqa: S102
    after = rewritten(tmp_path, "count_reserved_code", source, "out = table")
    assert changed_lines(source, after) == [wanted]
    exec(compile(after, "after", "exec"), {})  # noqa: S102
    assert rewritten(tmp_path, "count_reserved_code", after, "out = table") == after


CLASS = """class Catalogue:
    def __init__(self, words):
        self.codes = sorted(set(words))
        self.ids = {word: i for i, word in enumerate(self.codes, start=1)}
    def __len__(self):
        return len(self.codes)

catalogue = Catalogue(words)
ids = torch.tensor([catalogue.ids[word] for word in words])
"""


@pytest.mark.torch
def test_the_length_of_an_object_that_holds_the_codes(tmp_path: pathlib.Path) -> None:
    """The table is given one more than the object has; its own length, which others may read, stays."""
    pytest.importorskip("torch")
    source = HEAD + CLASS + "table = nn.Embedding(len(catalogue), 4, padding_idx=0)\nout = table(ids)\n"
    with pytest.raises(IndexError, match="index out of range in self"):
        exec(compile(source, "before", "exec"), {})  # noqa: S102
    after = rewritten(tmp_path, "count_reserved_code", source, "out = table")
    assert changed_lines(source, after) == ["table = nn.Embedding(len(catalogue) + 1, 4, padding_idx=0)"]
    exec(compile(after, "after", "exec"), {})  # noqa: S102
    counted = source.replace("return len(self.codes)", "return len(self.codes) + 1")
    assert rewritten(tmp_path, "count_reserved_code", counted, "out = table") == counted


SHIFTED = [
    "SPECIAL = (0, 1)\nvocab = {}\nfor word in words:\n    vocab.setdefault(word, len(vocab))\n"
    "codes = [vocab[word] + len(SPECIAL) for word in words]\nSIZE = len(vocab)\n",
    "PAD, FREE = 0, 2\nvocab = {word: i for i, word in enumerate(sorted(set(words)))}\n"
    "codes = [FREE + vocab[word] for word in words]\nSIZE = len(vocab)\n",
    "vocab = {word: i for i, word in enumerate(sorted(set(words)), 2)}\ncodes = [vocab[word] for word in words]\nSIZE = len(vocab)\n",
]


@pytest.mark.torch
@pytest.mark.parametrize(("made", "wanted"), zip(SHIFTED, ["len(SPECIAL)", "FREE", "2"], strict=True))
def test_codes_that_are_moved_behind_those_kept_free(tmp_path: pathlib.Path, made: str, wanted: str) -> None:
    """The table gets as many rows as are kept free, by the name that the program has for them."""
    pytest.importorskip("torch")
    source = HEAD + made + "table = nn.Embedding(SIZE, 4)\nout = table(torch.tensor(codes))\n"
    with pytest.raises(IndexError, match="index out of range in self"):
        exec(compile(source, "before", "exec"), {})  # noqa: S102
    after = rewritten(tmp_path, "count_reserved_code", source, "out = table")
    assert changed_lines(source, after) == [f"SIZE = len(vocab) + {wanted}"]
    exec(compile(after, "after", "exec"), {})  # noqa: S102


RECORD = """from dataclasses import dataclass
PAD = 0
@dataclass
class Catalogue:
    ids: dict
    name: str
    @property
    def count(self):
        return len(self.ids)

catalogue = Catalogue({word: i for i, word in enumerate(sorted(set(words)), start=PAD + 1)}, "tracks")
ids = torch.tensor([catalogue.ids[word] for word in words])
"""


@pytest.mark.torch
def test_codes_that_are_given_to_a_record(tmp_path: pathlib.Path) -> None:
    """They begin behind the padding's code, and the record's field is what is counted."""
    pytest.importorskip("torch")
    source = HEAD + RECORD + "table = nn.Embedding(catalogue.count, 4, padding_idx=PAD)\nout = table(ids)\n"
    with pytest.raises(IndexError, match="index out of range in self"):
        exec(compile(source, "before", "exec"), {"__name__": "__main__"})  # noqa: S102
    after = rewritten(tmp_path, "count_reserved_code", source, "out = table")
    assert changed_lines(source, after) == ["return len(self.ids) + 1"]
    exec(compile(after, "after", "exec"), {"__name__": "__main__"})  # noqa: S102


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_counts_right_stays(tmp_path: pathlib.Path, body: str) -> None:
    """Other codes, other lengths, and lengths of which none is known to make the table."""
    source = HEAD + body + TAIL
    assert rewritten(tmp_path, "count_reserved_code", source, "out = table") == source


def test_a_table_that_has_the_row(tmp_path: pathlib.Path) -> None:
    """Its rows are one more already: what asks for yet another counts the codes from 1 twice."""
    table = "class Table(nn.Module):\n    def __init__(self, count):\n        super().__init__()\n"
    table += (
        "        self.rows = nn.Embedding(count{more}, 4)\n    def forward(self, x):\n        return self.rows(x)\n"
    )
    for more, is_mended in ((" + 1", False), ("", True)):
        source = HEAD + FROM_ONE[0] + table.format(more=more) + "table = Table(len(vocab))\n" + TAIL
        after = rewritten(tmp_path, "count_reserved_code", source, "return self.rows")
        assert (after != source) == is_mended
