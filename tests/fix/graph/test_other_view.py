"""What one function gives for two views: a prediction goes on from one, the other is held against it."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.fix.graph.other_view import other_views
from explainer.fix.splice import splice
from tests.fix.rewriting import changed_lines, write

HEAD = """import torch
from torch import nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.predictor = nn.Linear(8, 4), nn.Linear(4, 4)

    def embed(self, x):
        return F.normalize(self.body(x), dim=-1)

"""
ONE_WAY = """    def one_way(self, view, other):
        p = F.normalize(self.predictor(self.embed(view)), dim=-1)
        z = self.embed(other)
        return -(p * z).sum(-1).mean()

    def forward(self, a, b):
        return self.one_way(a, b) + self.one_way(b, a)
"""
BOTH = """    def forward(self, a, b):
        z1, z2 = self.embed(a), self.embed(b)
        p1, p2 = self.predictor(z1), self.predictor(z2)
        return -(F.cosine_similarity(p1, z2).mean() + F.cosine_similarity(p2, z1).mean())
"""


def mended(tmp_path: pathlib.Path, source: str) -> list[str]:
    program = write(tmp_path, {"train.py": source})
    (file,) = program.parsed()
    function = next(one for one in ast.walk(file.tree) if isinstance(one, ast.FunctionDef) and one.name == "embed")
    return changed_lines(source, splice(source, tuple(other_views(function, file, program))) or source)


def test_a_loss_that_is_taken_both_ways(tmp_path: pathlib.Path) -> None:
    """The view that is compared as it is has no graph."""
    assert mended(tmp_path, HEAD + ONE_WAY) == ["z = self.embed(other).detach()"]


def test_each_view_is_predicted_from_and_compared_with(tmp_path: pathlib.Path) -> None:
    """The graph stays on the way through the predictor."""
    assert mended(tmp_path, HEAD + BOTH) == [
        "return -(F.cosine_similarity(p1, z2.detach()).mean() + F.cosine_similarity(p2, z1.detach()).mean())"
    ]


def test_a_class_that_says_so(tmp_path: pathlib.Path) -> None:
    """`SimSiam` tells it also where the loss is taken one way."""
    source = (HEAD + ONE_WAY).replace(" + self.one_way(b, a)", "")
    assert mended(tmp_path, source) == []
    assert mended(tmp_path, source.replace("Net", "SimSiam")) == ["z = self.embed(other).detach()"]


@pytest.mark.parametrize(
    "body",
    [
        "    def forward(self, a, b):\n        return (self.embed(a) * self.embed(b)).sum()\n",
        "    def forward(self, a, b):\n        return (self.predictor(self.embed(a)) * self.predictor(self.embed(b))).sum()\n",
    ],
    ids=["two towers", "both are predicted from"],
)
def test_views_that_are_alike_both_train(tmp_path: pathlib.Path, body: str) -> None:
    """Without a predictor on one of the two nothing tells a target."""
    assert mended(tmp_path, HEAD + body) == []
