"""The backward of what drives the training is called."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
from accelerate import Accelerator
"""
RIGHT = {
    "no driver": (
        HEAD
        + """net = nn.Linear(2, 1)
loss = net(torch.ones(1, 2)).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "the driver already": (
        HEAD
        + """accelerator = Accelerator()
loss = torch.ones(1, requires_grad=True).sum()
accelerator.backward(loss)
""",
        "accelerator.backward",
    ),
    "an engine": (
        HEAD
        + """import deepspeed
engine, *_ = deepspeed.initialize(model=None)
loss = engine(torch.ones(1, 2)).sum()
engine.backward(loss)
""",
        "engine.backward",
    ),
    "another class of the file": (
        HEAD
        + """class Tool:
    def run(self, loss):
        loss.backward()
""",
        "loss.backward()",
    ),
}
WRONG = {
    "an accelerator": (
        HEAD
        + """accelerator = Accelerator()
loss = torch.ones(1, requires_grad=True).sum()
loss.backward()
""",
        "loss.backward()",
        ["accelerator.backward(loss)"],
    ),
    "a driver that is handed in": (
        HEAD
        + """def step(model, fabric, x):
    loss = model(x).sum()
    loss.backward()
""",
        "loss.backward()",
        ["fabric.backward(loss)"],
    ),
    "an engine of DeepSpeed": (
        HEAD
        + """import deepspeed
engine, *_ = deepspeed.initialize(model=None)
loss = engine(torch.ones(1, 2)).sum()
loss.backward()
""",
        "loss.backward()",
        ["engine.backward(loss)"],
    ),
    "a LightningModule": (
        HEAD
        + """import lightning as L


class Net(L.LightningModule):
    def training_step(self, batch, index):
        loss = batch.sum()
        loss.backward()
""",
        "loss.backward()",
        ["self.manual_backward(loss)"],
    ),
    "a loss that is divided": (
        HEAD
        + """accelerator = Accelerator()
loss = torch.ones(1, requires_grad=True).sum()
(loss / 4).backward()
""",
        ".backward()",
        ["accelerator.backward(loss / 4)"],
    ),
    "a trainer of one's own": (
        HEAD
        + """class Fitter:
    def __init__(self):
        self.accelerator = Accelerator()

    def step(self, loss):
        loss.backward()
""",
        "loss.backward()",
        ["self.accelerator.backward(loss)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Backwards without a driver, and the driver's own, are left alone."""
    assert rewritten(tmp_path, "backward_of_wrapper", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The driver's backward is called; a second time nothing is left to do."""
    after = rewritten(tmp_path, "backward_of_wrapper", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "backward_of_wrapper", after, again) == after
