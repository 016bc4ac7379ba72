"""The model's outputs win where they are merged with the batch, only for one side of a comparison that a trace saw."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.model.trace import TracedLine
from tests.fix.rewriting import failed, write

SOURCE = """import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)
    def forward(self, x):
        return {"pace": self.head(x)}
class Terms:
    def joined(self, batch, outputs):
        return MERGED
    def __call__(self, batch, outputs):
        seen = self.joined(batch, outputs)
        return COMPARED
model, terms = Model(), Terms()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in loader:
    loss = terms(batch, model(batch["x"]))
    loss.backward()
    optimizer.step()
"""
DIFFERENCE = '(seen["pace"] - batch["pace"]).abs().mean()'


def edits(folder: pathlib.Path, merged: str, compared: str = DIFFERENCE) -> list[tuple[list[str], int | None]]:
    """What each proposal writes, and its line."""
    source = SOURCE.replace("MERGED", merged).replace("COMPARED", compared)
    program = write(folder, {"train.py": source})
    traced = TracedLine(
        kind="data-term",
        operation="sub",
        file=str(folder / "train.py"),
        line=14,
        function="__call__",
        node=None,
        says="",
    )
    context = Context(program=program, incident=replace(failed(), traced=(traced,)))
    return [([edit.new for edit in one.edits], one.culprit.line) for one in find_codemod("outputs_last")(context)]


@pytest.mark.parametrize("merged", ["{**outputs, **batch}", "outputs | batch", "dict(outputs, **batch)"])
def test_the_order_is_turned(tmp_path: pathlib.Path, merged: str) -> None:
    assert edits(tmp_path, merged) == [(["batch", "outputs"], 11)]
    compared = 'nn.functional.mse_loss(seen["pace"], batch["pace"])'
    assert edits(tmp_path, merged, compared) == [(["batch", "outputs"], 11)]


@pytest.mark.parametrize(
    ("merged", "compared"),
    [
        ("{**batch, **outputs}", DIFFERENCE),  # the outputs win already
        ('{**outputs, "x": batch["x"]}', DIFFERENCE),
        ("{**outputs, **batch}", '(seen["pace"] - seen["pace"]).abs().mean()'),  # the target would be lost
        ("{**outputs, **batch}", '(batch["pace"] - batch["x"]).abs().mean()'),
        ("{**outputs, **batch}", '(seen["pace"] - 1.0).abs().mean()'),
    ],
)
def test_where_nothing_is_turned(tmp_path: pathlib.Path, merged: str, compared: str) -> None:
    assert edits(tmp_path, merged, compared) == []
