"""Classes are counted over all labels, where a label of the held-out part was refused."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch
import torch.nn.functional as F
from torch import nn

def fold(x, y, away):
    train_x, train_y = x[~away], y[~away]
    model = nn.Linear(3, int(train_y.max()) + 1)
    F.cross_entropy(model(train_x), train_y).backward()
    held = F.cross_entropy(model(x[away]), y[away]).item()
    return held
"""
FACTS = {"live_refused_index": "5 of 5, from 1"}
STAYS = {
    "counted over all": SOURCE.replace("train_y.max()", "y.max()"),
    "labels of another tensor": SOURCE.replace("y[away])", "other[away])"),
    "a part that is bound twice": SOURCE.replace("    model =", "    train_y = train_y.long()\n    model ="),
}


@pytest.mark.parametrize(
    ("count", "wanted"),
    [
        ("int(train_y.max())", "int(y.max())"),
        ("int(torch.max(train_y))", "int(torch.max(y))"),
        ("max(train_y)", "max(y)"),
    ],
)
def test_the_whole_is_measured(count: str, wanted: str, tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace("int(train_y.max())", count)
    after = rewritten(tmp_path, "count_over_all", source, "held =", facts=FACTS)
    assert changed_lines(source, after) == [f"model = nn.Linear(3, {wanted} + 1)"]


@pytest.mark.parametrize("source", STAYS.values(), ids=STAYS)
def test_what_stays(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "count_over_all", source, "held =", facts=FACTS) == source


@pytest.mark.parametrize("facts", [{}, {"live_refused_index": "-1 of 5, from -1"}])
def test_another_index(facts: dict[str, str], tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "count_over_all", SOURCE, "held =", facts=facts) == SOURCE
