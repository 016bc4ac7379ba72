"""A schedule that watches a number is given it."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

LOOP = """import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

sched = ReduceLROnPlateau(opt, patience=1)
for epoch in range(4):
    train_loss = train(net)
    val = evaluate(net)
    sched.step()
"""
MISSING = "ReduceLROnPlateau.step() missing 1 required positional argument: 'metrics'"
CURED = {
    "the evaluation's": (LOOP, "sched.step(val)"),
    "the loss of training alone": (LOOP.replace("    val = evaluate(net)\n", ""), "sched.step(train_loss)"),
    "what losses are added up in": (
        LOOP.replace("train_loss = train(net)\n    val = evaluate(net)", "total = 0.0\n    for loss in train(net):\n        total += loss.item()"),
        "sched.step(total)",
    ),
    "what grows": (
        LOOP.replace("opt, patience", 'opt, mode="max", patience').replace("val =", "val_loss, val_acc ="), "sched.step(val_acc)",
    ),
}  # fmt: skip
STAYS = {
    "two of them": LOOP.replace("val =", "val_loss, test_loss ="),
    "nothing that grows": LOOP.replace("opt, patience", 'opt, mode="max", patience'),
    "nothing that is measured": LOOP.replace("train_loss", "done").replace("val =", "shown ="),
    "another schedule": LOOP.replace("ReduceLROnPlateau(opt, patience=1)", "Plateau(opt)"),
    "a number that is given": LOOP.replace("sched.step()", "sched.step(val)"),
}


@pytest.mark.parametrize(("source", "wanted"), CURED.values(), ids=CURED)
def test_the_number_is_given(tmp_path, source: str, wanted: str) -> None:
    after = rewritten(tmp_path, "metric_of_plateau", source, "sched.step", message=MISSING)
    assert changed_lines(source, after) == [wanted]


@pytest.mark.parametrize("source", STAYS.values(), ids=STAYS)
def test_what_is_watched_is_the_author_s_to_say(tmp_path, source: str) -> None:
    """Where several numbers fit, or none, nothing is written."""
    assert rewritten(tmp_path, "metric_of_plateau", source, "sched.step", message=MISSING) == source
