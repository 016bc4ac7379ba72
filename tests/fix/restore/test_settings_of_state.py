"""What a checkpoint was made with, and a second stage that makes it anew."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

PROGRAM = """import torch
class Corpus:
    def __init__(self, rows, labels=None, seed=0):
        self.labels = labels or sorted(set(rows))
def first(rows, path):
    corpus = Corpus(rows)
    model = build(len(corpus.labels))
    torch.save({"model": model.state_dict(), "labels": corpus.labels, "seed": 1}, path)
def second(rows, path):
    saved = torch.load(path)
    CALL
    model = build(len(corpus.labels))
    model.load_state_dict(saved["model"])
"""
LEFT = {
    "given": 'corpus = Corpus(rows, labels=saved["labels"])',
    "given by place": "corpus = Corpus(rows, find(rows))",
    "read elsewhere": 'names = saved["labels"]; corpus = Corpus(rows)',
    "no such parameter": "corpus = find(rows)",
}
SAID = "Error(s) in loading state_dict for Net: size mismatch for out.weight"


@pytest.mark.parametrize("line", ["corpus = Corpus(rows)", "corpus = Corpus(rows, seed=3)"])
def test_it_is_taken_from_the_checkpoint(tmp_path: pathlib.Path, line: str) -> None:
    """By its name, which the call's parameter has; a number that has a default of its own is left."""
    source = PROGRAM.replace("CALL", line)
    after = rewritten(tmp_path, "settings_of_state", source, "load_state_dict", message=SAID)
    assert changed_lines(source, after) == [line[:-1] + ', labels=saved["labels"])']


@pytest.mark.parametrize("line", LEFT.values(), ids=LEFT)
def test_others_stay(tmp_path: pathlib.Path, line: str) -> None:
    """What is given, or read in another way."""
    source = PROGRAM.replace("CALL", line)
    assert rewritten(tmp_path, "settings_of_state", source, "load_state_dict", message=SAID) == source


def test_another_failure(tmp_path: pathlib.Path) -> None:
    """Keys that are missing say nothing of sizes."""
    source = PROGRAM.replace("CALL", "corpus = Corpus(rows)")
    assert rewritten(tmp_path, "settings_of_state", source, "load_state_dict", message="Missing key(s)") == source
