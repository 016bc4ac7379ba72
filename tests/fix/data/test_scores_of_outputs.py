"""Metrics read the logits of a model that gives more than these."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = (
    "setting an array element with a sequence. The requested array has an inhomogeneous shape after 1 dimensions. "
    "The detected shape was (2,) + inhomogeneous part."
)
PROGRAM = """import numpy as np
from transformers import Trainer

def {name}(p):
    {taken}
    {line}
    return {{"accuracy": (found == p.label_ids).mean()}}

Trainer(model=model, {given}).train()
"""
GIVEN = "compute_metrics=measure"
WRONG = {
    "unpacked": ("logits, labels = p", "found = np.argmax(logits, axis=-1)", "logits"),
    "by name": ("scores = p.predictions", "found = np.argmax(scores, axis=-1)", "scores"),
    "in place": ("pass", "found = np.array(p.predictions).argmax(-1)", "p.predictions"),
}
RIGHT = {
    "the labels": ("logits, labels = p", "found = np.argmax(labels, axis=-1)", GIVEN),
    "no metrics of a Trainer": ("logits, labels = p", "found = np.argmax(logits, axis=-1)", "args=args"),
    "rows of its own": ("logits = rows()", "found = np.argmax(logits, axis=-1)", GIVEN),
}


@pytest.mark.parametrize(("taken", "line", "name"), WRONG.values(), ids=WRONG)
def test_the_first_of_the_outputs_is_taken(taken: str, line: str, name: str, tmp_path: pathlib.Path) -> None:
    source = PROGRAM.format(name="measure", taken=taken, line=line, given=GIVEN)
    wanted = line.replace(f"({name}", f"({name}[0] if isinstance({name}, tuple) else {name}")
    assert changed_lines(source, rewritten(tmp_path, "scores_of_outputs", source, line, message=MESSAGE)) == [wanted]
    assert rewritten(tmp_path, "scores_of_outputs", source, line, message="it failed") == source


@pytest.mark.parametrize(("taken", "line", "given"), RIGHT.values(), ids=RIGHT)
def test_other_arrays_stay(taken: str, line: str, given: str, tmp_path: pathlib.Path) -> None:
    source = PROGRAM.format(name="measure", taken=taken, line=line, given=given)
    assert rewritten(tmp_path, "scores_of_outputs", source, line, message=MESSAGE) == source
