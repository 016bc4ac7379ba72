"""A loader takes the collate function that the program has for its rows."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch.utils.data import DataLoader\n\ndef pad(rows):\n    return torch.nn.utils.rnn.pad_sequence(rows)\n\n"
GIVEN = {"message": "stack expects each tensor to be equal size, but got [15, 2] at entry 0 and [16, 2] at entry 2"}
OTHER = "val = DataLoader(b, batch_size=4, collate_fn=pad)\n"
WRONG = {
    "as the other loader": (
        HEAD + "train = DataLoader(a, batch_size=4)\n" + OTHER,
        ["train = DataLoader(a, batch_size=4, collate_fn=pad)"],
    ),
    "that nobody takes": (
        HEAD.replace("def pad(", "def pad_rows(") + "train = DataLoader(a)\nval = DataLoader(b)\n",
        ["train = DataLoader(a, collate_fn=pad_rows)", "val = DataLoader(b, collate_fn=pad_rows)"],
    ),
}
CLASS = """class Data:
    def train(self):
        return DataLoader(self.a, batch_size=4)
    def valid(self):
        return DataLoader(self.b, batch_size=4, collate_fn=self.rows)
"""
WRONG |= {
    "options that are written out": (
        HEAD
        + "common = {'batch_size': 4}\ntrain = DataLoader(a, **common)\nval = DataLoader(b, collate_fn=pad, **common)\n",
        ["train = DataLoader(a, **common, collate_fn=pad)"],
    ),
    "a method of the same object": (HEAD + CLASS, ["return DataLoader(self.a, batch_size=4, collate_fn=self.rows)"]),
}
RIGHT = {
    "options that hold one": HEAD + "common = dict(collate_fn=pad)\ntrain = DataLoader(a, **common)\n" + OTHER,
    "a method of another object": HEAD + CLASS.replace("    def valid", "class Other:\n    def valid"),
    "both have one": HEAD + "train = DataLoader(a, collate_fn=pad)\n" + OTHER,
    "two to choose from": HEAD + "train = DataLoader(a)\n" + OTHER + "test = DataLoader(c, collate_fn=other)\n",
    "options unpacked": HEAD + "train = DataLoader(a, **options)\n" + OTHER,
    "by position": HEAD + "train = DataLoader(a, 4, True, None, None, 0, pad)\n" + OTHER,
    "a method of something": HEAD + "train = DataLoader(a)\nval = DataLoader(b, collate_fn=self.rows)\n",
    "nothing to take": HEAD.replace("def pad(", "def show(") + "train = DataLoader(a)\n",
}


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_the_loader_takes_it(source: str, wanted: list[str], tmp_path) -> None:
    """Rows of different lengths are padded as elsewhere in the program."""
    after = rewritten(tmp_path, "collate_as_elsewhere", source, **GIVEN)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "collate_as_elsewhere", after, **GIVEN) == after


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(source: str, tmp_path) -> None:
    """Loaders that have one, and those for which none is known."""
    assert rewritten(tmp_path, "collate_as_elsewhere", source, **GIVEN) == source


@pytest.mark.parametrize(
    "message",
    [
        "each element in list of batch should be of equal size",
        "Trying to resize storage that is not resizable",
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'Track'>",
    ],
)
def test_what_else_the_default_says(message: str, tmp_path) -> None:
    """Of lists, in a worker, and of objects."""
    source, wanted = WRONG["as the other loader"]
    assert changed_lines(source, rewritten(tmp_path, "collate_as_elsewhere", source, message=message)) == wanted


def test_another_failure(tmp_path) -> None:
    """Only rows that cannot be stacked ask for it."""
    source = WRONG["as the other loader"][0]
    assert rewritten(tmp_path, "collate_as_elsewhere", source, message="stack expects a non-empty TensorList") == source
