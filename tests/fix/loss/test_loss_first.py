"""A model that gives its loss behind its scores, and a Trainer that takes the first for the loss."""

from __future__ import annotations

import pathlib

import pytest

from explainer.model.incident import ExceptionRecord, Frame, Incident
from tests.fix.rewriting import best, write

TRAINER = "/env/site-packages/transformers/trainer.py"
MODEL = """import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def forward(self, ids, labels=None):
        logits = self.head(ids)
        RETURN
"""
CROSS = "F.cross_entropy(logits, labels)"
WAYS = {
    "a call": (f"return logits, {CROSS}", f"{CROSS}, logits"),
    "in brackets": (f"return (logits, ids, {CROSS})", f"({CROSS}, logits, ids)"),
    "a name": (f"loss = {CROSS}\n        return logits, loss", "loss, logits"),
    "first already": (f"return {CROSS}, logits", None),
    "none": ("return logits, ids", None),
}


def mended(folder: pathlib.Path, line: str, library: str, more: str = "") -> str | None:
    """What stands in place of what is returned."""
    program = write(folder, {"train.py": MODEL.replace("RETURN", line) + more})
    frames = (Frame(file="train.py", line=1), Frame(file=library, line=9))
    record = ExceptionRecord(
        type="RuntimeError", message="grad can be implicitly created only for scalar outputs", frames=frames
    )
    found = best("loss_first", program, incident=Incident(exceptions=(record,)))
    return found.edits[0].new if found is not None else None


@pytest.mark.parametrize(("line", "wanted"), WAYS.values(), ids=WAYS)
def test_the_loss_goes_first(line: str, wanted: str | None, tmp_path: pathlib.Path) -> None:
    assert mended(tmp_path, line, TRAINER) == wanted


def test_who_takes_the_loss_otherwise(tmp_path: pathlib.Path) -> None:
    """A loop of its own, and a Trainer whose `compute_loss` the program writes."""
    line = WAYS["a call"][0]
    assert mended(tmp_path, line, "/env/site-packages/torch/_tensor.py") is None
    assert (
        mended(tmp_path, line, TRAINER, "\n\ndef compute_loss(self, model, inputs):\n    return model(**inputs)[1]\n")
        is None
    )
