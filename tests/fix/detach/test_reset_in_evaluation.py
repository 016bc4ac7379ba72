"""A stateful module whose evaluation resets it before each sequence is reset before each step of the training too."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SOURCE = """import torch
from torch import nn

class Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 8)
        self.h = None

    def reset(self):
        self.h = None

    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h

def rollout(net, rows):
    return torch.stack([net(x) for x in rows])

def other(net, rows):
    net.reset()
    LOOK

net = Control()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    rows = torch.randn(5, 2, 3)
    loss = rollout(net, rows).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("look", "wanted"),
    [
        ("with torch.no_grad():\n        return rollout(net, rows).mean()", ["+    net.reset()"]),
        ("return rollout(net, rows).mean()", []),
    ],
    ids=["an evaluation", "what may be an epoch of the training"],
)
def test_what_a_reset_elsewhere_says(tmp_path: pathlib.Path, look: str, wanted: list[str]) -> None:
    """Where nothing trains it means the start of a sequence; elsewhere it may mean that the state goes on from step to step."""
    source = SOURCE.replace("LOOK", look)
    after = rewritten(tmp_path, "detach_module_state", source, "loss.backward()")
    assert diff_lines(source, after) == wanted
