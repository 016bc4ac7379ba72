"""What a loss compares with in each step, and a network made once, is kept without its graph."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import ONCE, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SOURCE = """import torch
import torch.nn.functional as F
from torch import nn


class Objective:
    def __init__(self, extractor, image, layers=(1, 4)):
        self.extractor = extractor
        self.target = extractor(image)
        self.styles = {i: one.mean() for i, one in extractor.stages(image).items()}

    def __call__(self, canvas):
        found = self.extractor.stages(canvas)
        style = sum(F.mse_loss(found[i].mean(), self.styles[i]) for i in found)
        return F.mse_loss(self.extractor(canvas), self.target) + style


canvas = torch.zeros(3, requires_grad=True)
extractor = nn.Linear(3, 3)
objective = Objective(extractor, torch.ones(3))
optimizer = torch.optim.Adam([canvas])
for _ in range(3):
    loss = objective(canvas)
    loss.backward()
"""


def proposed(source: str, folder: pathlib.Path):
    program = write(folder, {"train.py": source})
    places = (line_of(source, "return F.mse_loss"), line_of(source, "style = sum("))
    traced = tuple(
        TracedLine(kind=ONCE, operation="mse_loss", file=str(folder / "train.py"), line=line) for line in places
    )
    return best("detach_target", program, incident=replace(failed(), traced=traced))


def test_targets_are_detached_where_they_are_made(tmp_path: pathlib.Path) -> None:
    """The value of an attribute, and that of each item of a dictionary."""
    proposal = proposed(SOURCE, tmp_path)
    assert proposal is not None
    assert changed_lines(SOURCE, splice(SOURCE, proposal.edits)) == [
        "self.target = extractor(image).detach()",
        "self.styles = {i: one.mean().detach() for i, one in extractor.stages(image).items()}",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Adam([canvas])", "Adam(extractor.parameters())"),
        ("extractor(image)\n", "extractor(image).detach()\n"),
        ("F.mse_loss(self.extractor(canvas), self.target)", "F.mse_loss(self.target, self.extractor(canvas))"),
    ],
    ids=["its weights train", "detached", "it is the prediction"],
)
def test_others_stay(old: str, new: str, tmp_path: pathlib.Path) -> None:
    """What trains may be meant to be computed anew; what is no target, or has no graph, is another matter."""
    assert proposed(SOURCE.replace(old, new), tmp_path) is None
