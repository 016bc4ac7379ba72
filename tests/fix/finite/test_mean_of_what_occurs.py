"""A mean over groups leaves out those that are empty, where the program says or does so elsewhere."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import NOT_FINITE, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

MACRO = '''import torch

def macro(total, count):
    """WORDS"""
    return (total / count).mean()

def recall(total, count):
    LOOK
'''
ASSAYS = '''import torch

def losses(error, mask):
    return error.sum(0) / mask.sum(0)

def loss(error, mask):
    """Mean over the assays."""
    return losses(error, mask).TAKE

def evaluate(error, mask):
    rows = []
    for at in range(mask.shape[1]):
        if mask[:, at].any():
            rows.append(error[:, at].sum() / mask[:, at].sum())
    return torch.stack(rows).mean()
'''
QUOTIENT = ["seen = count > 0", "return (total[seen] / count[seen]).mean()"]
CASES = {
    "words": (MACRO.replace("WORDS", "Mean over the classes that occur.").replace("LOOK", "return 0"), QUOTIENT),
    "an evaluation": (
        MACRO.replace("WORDS", "The loss.").replace("LOOK", "kept = count > 0\n    return (total / 1)[kept].mean()"),
        QUOTIENT,
    ),
    "nothing says so": (MACRO.replace("WORDS", "The loss.").replace("LOOK", "return total.sum() / 2"), []),
    "a mean that callers take": (
        ASSAYS.replace("TAKE", "mean()"),
        ["seen = mask.sum(0) > 0", "return error.sum(0)[seen] / mask.sum(0)[seen]"],
    ),
    "callers that read each": (ASSAYS.replace("TAKE", "unbind()"), []),
}


@pytest.mark.parametrize(("source", "wanted"), CASES.values(), ids=CASES)
def test_what_does_not_occur_is_left_out(source: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """Selected before the division: of 0 / 0 behind it the gradient would be NaN."""
    program = write(tmp_path, {"train.py": source})
    at = line_of(source, " / ")
    traced = TracedLine(kind=NOT_FINITE, operation="div", file=str(tmp_path / "train.py"), line=at)
    found = best("mean_of_what_occurs", program, incident=replace(failed(), traced=(traced,)))
    after = splice(source, found.edits) if found is not None else source
    assert changed_lines(source, after or "") == wanted
    assert best("mean_of_what_occurs", program) is None  # nothing was traced
