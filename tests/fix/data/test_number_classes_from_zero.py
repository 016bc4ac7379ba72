"""A table that numbers classes from 1, where the loss refused the highest of them."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from tests.fix.rewriting import changed_lines, failed, line_of, rewritten, write

USE = "y = [TABLE[name] for name in names]\nloss = model(x, labels=y).loss\n"
TARGET = {"fields": {"target": "3"}}
CURED = {
    "by hand": ('CODES = {"a": 1, "b": 2, "c": 3}', 'CODES = {"a": 0, "b": 1, "c": 2}'),
    "counted on": (
        "label2id = {name: i + 1 for i, name in enumerate(kinds)}",
        "label2id = {name: i for i, name in enumerate(kinds)}",
    ),
    "counted from 1": (
        "CLASSES = {name: i for i, name in enumerate(kinds, start=1)}",
        "CLASSES = {name: i for i, name in enumerate(kinds, start=0)}",
    ),
}
LEFT = {
    "from 0": 'CODES = {"a": 0, "b": 1, "c": 2, "d": 3}',
    "another highest": 'CODES = {"a": 1, "b": 2}',
    "a vocabulary": "vocabulary = {word: i + 1 for i, word in enumerate(words)}",
    "from 2": "label2id = {name: i for i, name in enumerate(kinds, 2)}",
    "0 for the others": 'CODES = {"a": 1, "b": 2, "c": 3}\nother = CODES.get(name, 0)',
}


def source_of(table: str) -> str:
    return table + "\n" + USE.replace("TABLE", table.split(" = ")[0])


@pytest.mark.parametrize(("table", "wanted"), CURED.values(), ids=CURED)
def test_it_begins_at_0(tmp_path: pathlib.Path, table: str, wanted: str) -> None:
    """The order stays; nothing is done where the labels hold a 0 besides."""
    source = source_of(table)
    assert changed_lines(source, rewritten(tmp_path, "number_classes_from_zero", source, "loss =", **TARGET)) == [
        wanted
    ]
    facts = {"live_refused_index": "3 of 3 from 0"}
    assert rewritten(tmp_path, "number_classes_from_zero", source, "loss =", facts=facts, **TARGET) == source


@pytest.mark.parametrize("table", LEFT.values(), ids=LEFT)
def test_others_stay(tmp_path: pathlib.Path, table: str) -> None:
    """Tables that begin at 0 or elsewhere, and those of which nothing says that they number classes."""
    source = source_of(table)
    assert rewritten(tmp_path, "number_classes_from_zero", source, "loss =", **TARGET) == source


def test_a_default_of_0_in_another_file(tmp_path: pathlib.Path) -> None:
    """What the table lacks has number 0 there: the model lacks a class."""
    (tmp_path / "data.py").write_text("from train import CODES\n\n\ndef number(name):\n    return CODES.get(name, 0)\n")
    source = "import data\n" + source_of(CURED["by hand"][0])
    program = write(tmp_path, {"data.py": (tmp_path / "data.py").read_text(), "train.py": source})
    incident = failed({"train.py": line_of(source, "loss =")})
    found = find_codemod("number_classes_from_zero")(Context(program=program, incident=incident, **TARGET))
    assert list(found) == []
