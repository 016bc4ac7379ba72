"""Predictions and targets get one shape, by the shapes that the message names."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
import torch.nn.functional as F
from torch import nn
net = nn.Linear(4, 1)
x, y = torch.randn(6, 4), torch.randn(6)
out = net(x)
"""
COLUMN = {"fields": {"input_shape": "[6, 1]", "target_shape": "[6]"}}
ROW = {"fields": {"input_shape": "[6]", "target_shape": "[6, 1]"}}
SHIFT = {"fields": {"left": "24", "right": "20"}}
RIGHT = {
    "squeezed already": (HEAD + "loss = F.mse_loss(out.squeeze(-1), y)\n", "loss =", COLUMN),
    "shapes that differ in size": (
        HEAD + "loss = F.mse_loss(out, y)\n",
        "loss =",
        {"fields": {"input_shape": "[6, 1]", "target_shape": "[5]"}},
    ),
    "a line that is not named": (HEAD + "print(x)\nloss = F.mse_loss(out, y)\n", "print(x)", COLUMN),
    "targets that were not shifted": (HEAD + "loss = F.cross_entropy(out, y)\n", "loss =", SHIFT),
    "predictions that are cut already": (
        HEAD + "logits = net(x)[:, :-1]\ny = x[:, 1:]\nloss = F.cross_entropy(logits.flatten(), y.flatten())\n",
        "loss =",
        SHIFT,
    ),
}
WRONG = {
    "a column of predictions": (
        HEAD + "loss = F.mse_loss(out, y)\n",
        "loss =",
        COLUMN,
        ["loss = F.mse_loss(out.squeeze(-1), y)"],
    ),
    "a call as prediction": (
        HEAD + "loss = nn.MSELoss()(net(x), y)\n",
        "loss =",
        COLUMN,
        ["loss = nn.MSELoss()(net(x).squeeze(-1), y)"],
    ),
    "a column of targets": (
        HEAD + "loss = F.l1_loss(out, y)\n",
        "loss =",
        ROW,
        ["loss = F.l1_loss(out, y.squeeze(-1))"],
    ),
    "class indices in a column": (
        HEAD + "loss = F.cross_entropy(out, y)\n",
        "loss =",
        {"fields": {"target_shape": "[6, 1]"}},
        ["loss = F.cross_entropy(out, y.squeeze(-1))"],
    ),
    "shifted targets": (
        HEAD + "logits = net(x)\ny = x[:, 1:]\nloss = F.cross_entropy(logits.view(-1, 2), y.reshape(-1))\n",
        "loss =",
        SHIFT,
        ["logits = net(x)[:, :-1]"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Shapes that differ otherwise, and values that are squeezed already, are left alone."""
    assert rewritten(tmp_path, "align_target_shape", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The trailing dimension or the last position goes; a second time nothing is left to do."""
    after = rewritten(tmp_path, "align_target_shape", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "align_target_shape", after, None if at not in after else at or None, **given) == after
