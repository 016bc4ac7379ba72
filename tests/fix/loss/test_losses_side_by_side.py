"""Losses of their own side by side are not reduced: their author says what each weighs. Alike ones are averaged."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

SOURCE = """import torch
from torch.nn import functional as F

LOSSES = {"rain": F.l1_loss, "heat": F.mse_loss}


def losses(made, batch):
    return STACK


loss = losses(model(x), batch)
loss.backward()
"""
TERMS = {
    "by their names": "torch.stack([LOSSES[name](value, batch[name]) for name, value in made.items()])",
    "made flat": "torch.stack([LOSSES[name](value, batch[name]) for name, value in made.items()]).squeeze()",
    "written out": "torch.stack([F.l1_loss(made[0], batch[0]), F.mse_loss(made[1], batch[1])])",
    "by names of their own": "torch.stack([rain, heat])",
}
ALIKE = {
    "one criterion": "torch.stack([F.l1_loss(a, b) for a, b in zip(made, batch)])",
    "of each sample": "F.l1_loss(made, batch, reduction='none')",
}
MESSAGE = "grad can be implicitly created only for scalar outputs"


@pytest.mark.parametrize("stack", TERMS.values(), ids=TERMS)
def test_terms_are_left_to_their_author(stack: str, tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace("STACK", stack)
    program = write(tmp_path, {"train.py": source})
    found = best("reduce_loss", program, incident=failed({"train.py": line_of(source, "loss.backward")}, MESSAGE))
    assert found is not None and found.edits == ()


@pytest.mark.parametrize("stack", ALIKE.values(), ids=ALIKE)
def test_alike_ones_are_averaged(stack: str, tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace("STACK", stack)
    after = rewritten(tmp_path, "reduce_loss", source, "loss.backward", message=MESSAGE)
    assert ".mean()" in "".join(changed_lines(source, after))
