"""A Gaussian likelihood is given the variance of what is read as its logarithm."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch
from torch import nn
import torch.nn.functional as F

net = nn.Linear(3, 2)
nll = nn.GaussianNLLLoss()


def draw(x):
    mean, {name} = net(x).chunk(2, dim=1)
    return mean + torch.randn_like(mean) * {reader}


mean, {name} = net(torch.randn(4, 3)).chunk(2, dim=1)
loss = {loss}
loss.backward()
"""
MENDED = {
    "a name that says so": ("log_var", "1", "nll(mean, y, log_var)", "loss = nll(mean, y, log_var.exp())"),
    "a reader": ("spread", "torch.exp(0.5 * spread)", "nll(mean, y, spread)", "loss = nll(mean, y, spread.exp())"),
    "a method that reads": (
        "spread",
        "(spread / 2).exp()",
        "nll(mean, y, spread)",
        "loss = nll(mean, y, spread.exp())",
    ),
    "the function": (
        "logvar",
        "1",
        "F.gaussian_nll_loss(mean, y, var=logvar)",
        "loss = F.gaussian_nll_loss(mean, y, var=logvar.exp())",
    ),
}
LEFT = {
    "nothing says so": ("spread", "spread", "nll(mean, y, spread)"),
    "another factor": ("spread", "torch.exp(0.1 * spread)", "nll(mean, y, spread)"),
    "another loss": ("log_var", "1", "F.mse_loss(mean, y) + log_var.sum()"),
}
NEGATIVE = "var has negative entry/entries"


@pytest.mark.parametrize(("name", "reader", "loss", "wanted"), MENDED.values(), ids=MENDED)
def test_a_logarithm_becomes_a_variance(name: str, reader: str, loss: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """What else reads it as a logarithm keeps reading the same quantity."""
    source = SOURCE.format(name=name, reader=reader, loss=loss)
    after = rewritten(tmp_path, "variance_of_logarithm", source, "loss =", message=NEGATIVE)
    assert changed_lines(source, after) == [wanted]


@pytest.mark.parametrize(("name", "reader", "loss"), LEFT.values(), ids=LEFT)
def test_what_may_be_a_variance_stays(name: str, reader: str, loss: str, tmp_path: pathlib.Path) -> None:
    """A floor, an absolute value or an exponential are three models: its author knows which."""
    source = SOURCE.format(name=name, reader=reader, loss=loss)
    assert rewritten(tmp_path, "variance_of_logarithm", source, "loss =", message=NEGATIVE) == source
