"""Which split of the data a place of a program is about."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.data.split_side import HELD_OUT, TRAIN, side_of, side_of_test, without_side
from explainer.source.program import read_program

PLACES = {
    "no word of a split": ("ids = here(rows)\n", None),
    "words of both": ("train, valid = here(rows)\n", None),
    "a word within another": ("latest = here(constraint)\n", None),
    "used for both": ("def encode(x):\n    return here(x)\na = encode(train)\nb = encode(valid)\n", None),
    "a target": ("train_ids = here(rows)\n", TRAIN),
    "an argument": ("ids = here(read('dev'))\n", HELD_OUT),
    "the nearest word": ("train = [here(valid_rows)]\n", HELD_OUT),
    "a loop": ("for row in test_rows:\n    ids.append(here(row))\n", HELD_OUT),
    "a branch": ("if split == 'train':\n    x = 1\nelse:\n    x = here(rows)\n", HELD_OUT),
    "a function": ("def encodeValid(rows):\n    return here(rows)\n", HELD_OUT),
    "a class": ("class TrainSet:\n    def __getitem__(self, at):\n        return here(at)\n", TRAIN),
    "a use": ("def encode(x):\n    return here(x)\na = train.map(encode)\n", TRAIN),
}
TESTS = {
    "train": TRAIN,
    "self.is_train": TRAIN,
    "not training": HELD_OUT,
    "split == 'test'": HELD_OUT,
    "mode != 'train'": HELD_OUT,
    "split in ('val', 'test')": HELD_OUT,
    "split in ('train', 'test')": None,
    "flag": None,
    "train and more": None,
}


@pytest.mark.parametrize(("source", "wanted"), PLACES.values(), ids=PLACES)
def test_a_place_is_about_a_split(source: str, wanted: str | None, tmp_path: pathlib.Path) -> None:
    """The nearest words say it; where these name both splits, or none, it is not known."""
    (tmp_path / "train.py").write_text(source)
    program = read_program(str(tmp_path), ["train.py"])
    (file,) = program.parsed()
    node = next(one for one in file.walk() if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "here")
    assert side_of(node, file, program) == wanted


@pytest.mark.parametrize(("test", "wanted"), TESTS.items(), ids=TESTS)
def test_a_condition_is_about_a_split(test: str, wanted: str | None) -> None:
    """A condition that is true of one split alone."""
    assert side_of_test(ast.parse(test, mode="eval").body) == wanted


@pytest.mark.parametrize(("one", "other"), [("x1", "x2"), ("encode_valid", "encode"), ("{:d}", "")])
def test_names_but_for_their_split(one: str, other: str) -> None:
    """Names are alike where they differ in the word for the split, and in nothing else."""
    assert (without_side(one) == without_side(other)) == (one == "encode_valid")
