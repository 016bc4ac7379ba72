"""Labels of -1: the one of two signs, or the mark of what has none."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "Target -1 is out of bounds."
SIGNS = {"live_refused_labels": "-1 to 1, 2 of them", "live_refused_index": "-1 of 2, from -1"}
UNLABELLED = {"live_refused_labels": "-1 to 3, 5 of them", "live_refused_index": "-1 of 4, from -1"}
PROGRAM = """\
import torch
import torch.nn.functional as F

labels = torch.randint(0, 4, (n,))
{write}
loss = F.cross_entropy(logits, labels)
"""


def edited(folder: pathlib.Path, codemod: str, facts: dict[str, str], write: str = "") -> list[str]:
    """The lines that change where the loss refused -1."""
    source = PROGRAM.format(write=write)
    return changed_lines(source, rewritten(folder, codemod, source, "loss = ", message=MESSAGE, facts=facts))


def test_signs(tmp_path: pathlib.Path) -> None:
    """They become 0 and 1."""
    assert edited(tmp_path, "classes_of_signs", SIGNS) == ["loss = F.cross_entropy(logits, (labels + 1) // 2)"]


@pytest.mark.parametrize(
    "facts",
    [UNLABELLED, {}, SIGNS | {"live_refused_labels": "-1 to 1, 3 of them"}, SIGNS | {"live_refused_index": "-1 of 3, from -1"}],
    ids=["a mark", "not seen", "neutral ones too", "three classes"],
)  # fmt: skip
def test_no_signs(tmp_path: pathlib.Path, facts: dict[str, str]) -> None:
    """Only two labels of two classes."""
    assert edited(tmp_path, "classes_of_signs", facts) == []


def test_labels_that_were_taken_away(tmp_path: pathlib.Path) -> None:
    """The program writes -1 over some."""
    assert edited(tmp_path, "ignore_marker", UNLABELLED, "labels[hidden] = -1") == [
        "loss = F.cross_entropy(logits, labels, ignore_index=-1)"
    ]


@pytest.mark.parametrize(
    ("facts", "write"),
    [
        pytest.param(SIGNS, "labels[n // 2 :] = -1", id="two classes"),
        pytest.param({}, "labels[hidden] = -1", id="not seen"),
        pytest.param(UNLABELLED, "labels[hidden] = -1; labels[shown] = 2", id="classes are written so as well"),
        pytest.param(UNLABELLED, "", id="nothing writes it"),
        pytest.param(UNLABELLED, "weights[hidden] = -1", id="no labels"),
    ],
)
def test_not_taken_away(tmp_path: pathlib.Path, facts: dict[str, str], write: str) -> None:
    """Where -1 may be a class."""
    assert edited(tmp_path, "ignore_marker", facts, write) == []
