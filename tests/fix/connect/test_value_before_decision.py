"""The loss takes what a helper decides on; the helper, which an evaluation calls too, stays."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch
from torch import nn
class Learner:
    def __init__(self):
        self.model, self.threshold = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid()), 0.3
        self.criterion = nn.BCELoss()
    def predict(self, x, scale=1.0):
        BODY
    def step(self, batch, y):
        guess = self.predict(batch)
        loss = self.criterion(guess, y)
        loss.backward()
    def accuracy(self, x, y):
        return (self.predict(x) == y).float().mean()
learner = Learner()
learner.step(torch.randn(2, 4), torch.ones(2, 1))
"""
WRONG = {
    "a threshold of its own": "p = self.model(x)\n        return (p > self.threshold).float()",
    "in one line": "return (self.model(x) >= 0.5).float()",
    "the largest": "return torch.argmax(self.model(x), dim=1).float()",
    "rounded": "p = self.model(x)\n        return p.round()",
}
RIGHT = {
    "the value itself": "return self.model(x)",
    "more than a decision": "p = self.model(x)\n        p = p.clamp(0, 1)\n        return (p > 0.5).float()",
    "what the caller has not": "return (self.model(x * scale) > 0.5).float()",
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_the_call_becomes_the_value(tmp_path: pathlib.Path, body: str) -> None:
    """With the caller's own names; the helper is as it was."""
    source = SOURCE.replace("BODY", body)
    after = rewritten(tmp_path, "value_before_decision", source, "loss.backward")
    assert changed_lines(source, after) == ["guess = self.model(batch)"]


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_other_helpers_stay(tmp_path: pathlib.Path, body: str) -> None:
    """One that does more than decide, or reads what its caller does not know."""
    source = SOURCE.replace("BODY", body)
    assert rewritten(tmp_path, "value_before_decision", source, "loss.backward") == source
