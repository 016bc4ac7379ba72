"""What a registered buffer keeps is detached; attributes that are no buffers, and values without a graph, stay."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import rewritten

WRONG = {
    "a name": ("self.memory = fresh", "self.memory = fresh.detach()"),
    "a sum": (
        "self.memory = 0.9 * self.memory + 0.1 * fresh",
        "self.memory = (0.9 * self.memory + 0.1 * fresh).detach()",
    ),
}
RIGHT = {
    "detached": "self.memory = fresh.detach()",
    "made anew": "self.memory = torch.zeros(3)",
    "no buffer": "self.other = fresh",
    "without grad": "with torch.no_grad():\n            self.memory = fresh",
}


def program(line: str) -> str:
    return f"""import torch

class Bank(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.zeros(3))

    def update(self, fresh):
        {line}
"""


@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG.keys())
def test_the_kept_value_is_detached(tmp_path: pathlib.Path, line: str, wanted: str) -> None:
    """Once, and the second time nothing is left."""
    after = rewritten(tmp_path, "detach_kept_buffer", program(line))
    assert after == program(wanted)
    assert rewritten(tmp_path, "detach_kept_buffer", after) == after


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT.keys())
def test_others_stay(tmp_path: pathlib.Path, line: str) -> None:
    """Nothing there has a graph, or it is no buffer."""
    assert rewritten(tmp_path, "detach_kept_buffer", program(line)) == program(line)


ENSEMBLE = """import torch

class Ensemble:
    def __init__(self, n):
        self.z = torch.zeros(n, 2)
        self.seen = []

    def targets(self, i):
        return self.z[i] / 2

    def update(self, i, p):
        self.z[i] = 0.6 * self.z[i] + 0.4 * p
        self.seen[i] = p

net = torch.nn.Linear(3, 2)
ensemble, counts = Ensemble(4), {}
opt = torch.optim.SGD(net.parameters(), 0.1)
for i, x in enumerate(torch.randn(4, 3)):
    p = net(x).softmax(-1)
    BEFORE
    loss = (p - ensemble.targets(i)).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    AFTER
    counts.update({i: 1})
"""
UPDATE, NOTHING = "ensemble.update(i, p)", "opt.step()"


def test_what_an_object_keeps_for_the_next_step(tmp_path: pathlib.Path) -> None:
    """Written behind the backward it is a constant of the steps to come."""
    source = ENSEMBLE.replace("BEFORE", "i = int(i)").replace("AFTER", UPDATE)
    after = rewritten(tmp_path, "detach_kept_buffer", source)
    assert after == source.replace("0.6 * self.z[i] + 0.4 * p", "(0.6 * self.z[i] + 0.4 * p).detach()")
    assert rewritten(tmp_path, "detach_kept_buffer", after) == after


def test_what_this_step_reads(tmp_path: pathlib.Path) -> None:
    """Written before the backward it may be part of this step's loss."""
    source = ENSEMBLE.replace("BEFORE", UPDATE).replace("AFTER", NOTHING)
    assert rewritten(tmp_path, "detach_kept_buffer", source) == source


MEMORY = """import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 3)
        self.register_buffer("memory", torch.zeros(9, 3))

    def forward(self, rows, x):
        state = self.cell(x, self.memory[rows])
        self.memory = self.memory.index_copy(0, rows, state)
        return RESULT
"""


def test_a_buffer_that_this_step_reads_as_well(tmp_path: pathlib.Path) -> None:
    """What is returned goes on into the loss: the old memory is detached, not the new one."""
    source = MEMORY.replace("RESULT", "self.memory")
    after = rewritten(tmp_path, "detach_kept_buffer", source)
    taken_up = "        state = self.cell(x, self.memory[rows])\n"
    assert after == source.replace(taken_up, "        self.memory = self.memory.detach()\n" + taken_up)
    other = MEMORY.replace("RESULT", "state")
    after = rewritten(tmp_path, "detach_kept_buffer", other)
    assert after == other.replace("index_copy(0, rows, state)", "index_copy(0, rows, state).detach()")
