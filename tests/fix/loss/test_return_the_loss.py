"""A step of a trainer returns its loss, under its key or at all."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

STEP = """import lightning as L
import torch
from torch import nn
from torch.nn import functional as F


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.mse_loss(self.net(x), y)
{end}
"""
OVERRIDE = """import torch
from torch import nn
from transformers import Trainer

model = nn.Linear(4, 2)


class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(inputs["x"])
        loss = outputs.square().mean()
{end}


Mine(model).train()
"""
SHARED = """import lightning as L
from torch import nn
from torch.nn import functional as F


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    def both(self, batch):
        x, y = batch
        out = self.net(x)
        return {"val_loss": F.mse_loss(out, y), "hits": (out.argmax(1) == y.argmax(1)).float().mean()}

    def training_step(self, batch, batch_idx):
{end}
"""
WRONG = {
    "of a helper that validation shares": (
        SHARED,
        "        out = self.both(batch)\n        return out",
        ['return {**out, "loss": out["val_loss"]}'],
    ),
    "of a helper in place": (SHARED, "        return self.both(batch)", ['return self.both(batch)["val_loss"]']),
    "under another name": (
        STEP,
        '        return {"objective": loss, "size": y.square().mean()}',
        ['return {"loss": loss, "objective": loss, "size": y.square().mean()}'],
    ),
    "beside what is detached": (
        STEP,
        '        return {"value": loss.detach(), "total": loss}',
        ['return {"loss": loss, "value": loss.detach(), "total": loss}'],
    ),
    "in a name": (
        STEP,
        '        out = {"objective": loss}\n        return out',
        ['out = {"loss": loss, "objective": loss}'],
    ),
    "as a number": (STEP, "        return loss.item()", ["return loss"]),
    "as a number by a function": (STEP, "        return float(loss.detach())", ["return loss"]),
    "not at all": (STEP, '        self.log("train_loss", loss)', ["return loss"]),
    "an override": (
        OVERRIDE,
        "        self.seen = loss.item()",
        ["return (loss, outputs) if return_outputs else loss"],
    ),
}
RIGHT = {
    "two with a graph": (STEP, '        return {"a": loss, "b": 2 * loss}'),
    "two of a helper": (
        SHARED.replace("(out.argmax(1) == y.argmax(1)).float().mean()", "out.mean()"),
        "        return self.both(batch)",
    ),
    "by its name": (STEP, '        return {"loss": loss, "b": 2 * loss}'),
    "the loss": (STEP, "        return loss"),
    "another number": (STEP, "        return y.detach().mean().item()"),
    "an expression": (STEP, '        return {"a": loss * 2}'),
    "optimized by hand, with the usual name": (
        STEP.replace("super().__init__()", "super().__init__()\n        self.automatic_optimization = False"),
        "        self.manual_backward(loss)",
    ),
    "optimized by hand": (STEP.replace("loss =", "error ="), "        self.manual_backward(error)"),
}


@pytest.mark.parametrize(("source", "end", "wanted"), WRONG.values(), ids=WRONG)
def test_it_is_returned(source: str, end: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """And a second time nothing is left to do."""
    before = source.replace("{end}", end)
    after = rewritten(tmp_path, "return_the_loss", before)
    assert changed_lines(before, after) == wanted
    assert rewritten(tmp_path, "return_the_loss", after) == after


@pytest.mark.parametrize(("source", "end"), RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(source: str, end: str, tmp_path: pathlib.Path) -> None:
    """Where it is returned already, or which one it is cannot be told."""
    before = source.replace("{end}", end)
    assert rewritten(tmp_path, "return_the_loss", before) == before
