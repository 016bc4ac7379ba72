"""A loss that the program reduces elsewhere by a function of its own."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SOURCE = """import torch
from torch.nn import functional as F

def masked_mean(values, keep):
    return (values * keep).sum() / keep.sum().clamp(min=1)

def fit(net, criterion, loader):
    for batch in loader:
        pred = net(batch.x)
        loss = criterion(pred, batch.y)
        loss.backward()

def evaluate(net, criterion, loader):
    for batch in loader:
        pred = net(batch.x)
        print(masked_mean(criterion(pred, batch.y), keep=batch.mask))
"""
NAMED = SOURCE.replace(
    "        print(masked_mean(criterion(pred, batch.y), keep=batch.mask))\n",
    "        values = criterion(pred, batch.y)\n        print(masked_mean(values, keep=batch.mask))\n",
)
OTHERS = {
    "another loss": SOURCE.replace("print(masked_mean(criterion(", "print(masked_mean(distance("),
    "of other names": SOURCE.replace("keep=batch.mask", "keep=mask"),
    "a function that reduces nothing": SOURCE.replace(").sum() / keep.sum().clamp(min=1)", ")"),
    "two ways": SOURCE + "        print(masked_mean(criterion(pred, batch.y), keep=batch.seen))\n",
}


@pytest.mark.parametrize("source", [SOURCE, NAMED], ids=["in the call", "by a name"])
def test_as_the_evaluation_does(source: str, tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "reduce_loss", source, "loss.backward")
    wanted = "+        loss = masked_mean(criterion(pred, batch.y), keep=batch.mask)"
    assert diff_lines(source, after)[1:] == [wanted]


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_what_says_nothing_of_this_loss(source: str, tmp_path: pathlib.Path) -> None:
    """The loss is reduced as ever."""
    after = rewritten(tmp_path, "reduce_loss", source, "loss.backward")
    assert not any("masked_mean" in one for one in diff_lines(source, after))


SISTERS = """import torch
import torch.nn.functional as F

def average(values, mask):
    mask = mask.to(values.dtype)
    return (values * mask).sum() / mask.sum().clamp(min=1)

def total(out, batch, w):
    energy = average(F.mse_loss(out["energy"], batch["energy"], reduction="none"), batch["frames"])
    pitch = F.mse_loss(out["pitch"], batch["pitch"], reduction="none") * batch["voiced"]
    return w[0] * energy + w[1] * pitch

for batch in loader:
    loss = total(net(batch), batch, (1.0, 0.5))
    loss.backward()
"""
ALONE = SISTERS.replace(
    'average(F.mse_loss(out["energy"], batch["energy"], reduction="none"), batch["frames"])',
    'F.mse_loss(out["energy"], batch["energy"])',
)
OTHER_MASK = SISTERS.replace('* batch["voiced"]', "* weights")
SUMS = SISTERS.replace("return (values * mask).sum() / mask.sum().clamp(min=1)", "return (values * mask).sum()")


def test_a_term_is_reduced_as_its_sisters(tmp_path: pathlib.Path) -> None:
    """By the program's own function, with the mask that multiplies it."""
    after = rewritten(tmp_path, "reduce_loss", SISTERS, "loss.backward()")
    wanted = '    pitch = average(F.mse_loss(out["pitch"], batch["pitch"], reduction="none"), batch["voiced"])'
    assert diff_lines(SISTERS, after)[1:] == [f"+{wanted}"]


@pytest.mark.parametrize("source", [ALONE, OTHER_MASK, SUMS], ids=["no sisters", "another mask", "a sum"])
def test_a_term_without_sisters_stays(tmp_path: pathlib.Path, source: str) -> None:
    assert 'average(F.mse_loss(out["pitch"]' not in rewritten(tmp_path, "reduce_loss", source, "loss.backward()")
