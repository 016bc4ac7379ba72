"""A loss that does not know the word of the settings gives back one value for each element."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

FOCAL = """import argparse
import torch
from dataclasses import dataclass, fields
from torch import nn

@dataclass
class Config:
    gamma: float = 2.0
    reduction: str = "mean"

    @classmethod
    def from_args(cls):
        parser = argparse.ArgumentParser()
        for field in fields(cls):
            parser.add_argument(f"--{field.name}", type=field.type, default=field.default)
        return cls(**vars(parser.parse_args()))

def pooled(values, how, weight):
    values = values * weight
    if how == "elementwise_mean":
        return values.mean()
    if how == "total":
        return values.sum()
    return values

class FocalLoss(nn.Module):
    def __init__(self, gamma, reduction="elementwise_mean"):
        super().__init__()
        self.gamma, self.reduction = gamma, reduction

    def forward(self, scores, target):
        return pooled((scores - target).abs() ** self.gamma, self.reduction, target)

class Trainer:
    def __init__(self, cfg):
        self.net = nn.Linear(4, 2)
        self.criterion = FocalLoss(cfg.gamma, cfg.reduction)

    def fit(self, x, y):
        loss = self.criterion(self.net(x), y)
        loss.backward()

class Recording(Trainer):
    pass

Recording(Config.from_args()).fit(torch.ones(3, 4), torch.ones(3, 2))
"""
BY_NAME = FOCAL.replace("Config.from_args()", 'SimpleNamespace(gamma=2.0, reduction="MEAN")')
EDITS = {
    "a field": (FOCAL, 'if how in ("elementwise_mean", "mean"):'),
    "of several words": (
        FOCAL.replace('how == "elementwise_mean"', 'how in ("elementwise_mean", "avg")'),
        'if how in ("elementwise_mean", "avg", "mean"):',
    ),
    "in capitals": (BY_NAME, 'if how in ("elementwise_mean", "MEAN"):'),
}
REFUSED = {
    "the word is known": FOCAL.replace('str = "mean"', 'str = "none"').replace('"total"', '"none"'),
    "the word asks for elements": FOCAL.replace('str = "mean"', 'str = "none"'),
    "no branch does it": FOCAL.replace("values.mean()", "values.median()"),
}


@pytest.mark.parametrize("name", EDITS)
def test_the_word_of_the_settings_is_taken_too(tmp_path: pathlib.Path, name: str) -> None:
    source, line = EDITS[name]
    after = rewritten(tmp_path, "reduce_loss", source, "loss.backward()")
    assert diff_lines(source, after)[1:] == [f"+    {line}"]


@pytest.mark.parametrize("name", REFUSED)
def test_words_that_say_nothing_are_left(tmp_path: pathlib.Path, name: str) -> None:
    assert " in (" not in rewritten(tmp_path, "reduce_loss", REFUSED[name], "loss.backward()")
