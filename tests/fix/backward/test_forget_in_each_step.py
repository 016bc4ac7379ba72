"""A memory that the passes of one step share is emptied where the next step begins."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RANKER = """import torch
from torch import nn
from torch.nn import functional as F

class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.reader = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2))
        self.memory = None

    def forget(self):
        self.memory = None

    def forward(self, prompt, reply):
        if self.memory is None:
            self.memory = self.reader(prompt)
        return (self.memory * reply).sum(-1)

def evaluate(model):
    model.forget()
    return model(torch.ones(2, 4), torch.ones(2, 8)).mean().item()

torch.manual_seed(0)
model = Ranker()
for step in range(3):
    prompt, good, bad = torch.randn(2, 4), torch.randn(2, 8), torch.randn(2, 8)
    loss = -F.logsigmoid(model(prompt, good) - model(prompt, bad)).mean()
    loss.backward()
print(evaluate(model))
"""
STAYS = {
    "it is emptied": RANKER.replace("    prompt, good", "    model.forget()\n    prompt, good"),
    "nobody empties it": RANKER.replace("    model.forget()\n    return", "    return"),
    "a method that does more": RANKER.replace("    def forget(self):\n", "    def forget(self):\n        print(self.memory)\n"),
    "another guard": RANKER.replace("if self.memory is None:", "if prompt is None:"),
    "a state": RANKER.replace("        return (self.memory * reply)", "        self.memory = self.memory * 0.9 + self.reader(prompt)\n        return (self.memory * reply)"),
    "a state that the cell hands on": RANKER.replace("        return (self.memory * reply)", "        out, self.memory = self.cell(prompt, self.memory)\n        return (out * reply)"),
}  # fmt: skip


def test_the_step_begins_without_it(tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "forget_in_each_step", RANKER, "loss.backward()")
    assert diff_lines(RANKER, after) == ["+    model.forget()"]
    lines = after.splitlines()
    assert lines[lines.index("    model.forget()", 24) + 1].startswith("    loss = ")


@pytest.mark.parametrize("name", STAYS)
def test_what_is_not_sure_stays(tmp_path: pathlib.Path, name: str) -> None:
    assert rewritten(tmp_path, "forget_in_each_step", STAYS[name], "loss.backward()") == STAYS[name]


@pytest.mark.torch
def test_the_program_trains(tmp_path: pathlib.Path) -> None:
    """It failed in the second step, and ends with the edit."""
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="second time"):
        exec(RANKER, {})  # noqa: S102 - the program of a test
    exec(rewritten(tmp_path, "forget_in_each_step", RANKER, "loss.backward()"), {})  # noqa: S102
