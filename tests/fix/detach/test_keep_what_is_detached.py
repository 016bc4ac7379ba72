"""Tests of `fix.codemods.detach.keep_what_is_detached`."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

STATE = """import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4)
        self.state = None

    def forward(self, x):
        y, self.state = self.rnn(x, self.state)
        return y

    def {method}(self):
        {body}

layer = Layer()
for x in torch.randn(3, 5, 2, 3):
    layer.{method}()
    layer(x).sum().backward()
"""
MENDED = {
    "a tensor": ("self.state.detach()", ["self.state = self.state.detach()"]),
    "an entry": ('self.state["h"].detach()', ['self.state["h"] = self.state["h"].detach()']),
    "parts by number": (
        "self.state[0].detach()\n        self.state[1].detach()",
        ["self.state = tuple(part.detach() for part in self.state)"],
    ),
    "a list made for nothing": (
        "[one.detach() for one in self.state]",
        ["self.state = [one.detach() for one in self.state]"],
    ),
    "a loop": (
        "for one in self.state:\n            one.detach()",
        ["self.state = [one.detach() for one in self.state]"],
    ),
}
RIGHT = {
    "it is kept": "self.state = self.state.detach()",
    "it is given on": "self.state = list(map(torch.Tensor.detach, self.state)) or [self.state[0].detach()]",
    "in place": "self.state.detach_()",
    "more in the loop": "for one in self.state:\n            one.detach()\n            one.zero_()",
}


@pytest.mark.parametrize("method", ["cut", "detach"])
@pytest.mark.parametrize(("body", "lines"), MENDED.values(), ids=MENDED)
def test_what_is_thrown_away_is_kept(body: str, lines: list[str], method: str, tmp_path: pathlib.Path) -> None:
    """The attribute takes the tensor without its graph, in the form that it had."""
    source = STATE.format(method=method, body=body)
    after = rewritten(tmp_path, "keep_what_is_detached", source, "layer(x).sum()")
    assert changed_lines(source, after) == lines
    assert rewritten(tmp_path, "keep_what_is_detached", after, "layer(x).sum()") == after


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_is_used_stays(body: str, tmp_path: pathlib.Path) -> None:
    """Where the result goes somewhere there is nothing to mend."""
    source = STATE.format(method="cut", body=body)
    assert rewritten(tmp_path, "keep_what_is_detached", source, "layer(x).sum()") == source


def test_a_method_of_that_name_is_called(tmp_path: pathlib.Path) -> None:
    """`layer.detach()` is a call of the program's own method, which gives nothing to keep."""
    source = STATE.format(method="detach", body="self.state = tuple(one.detach() for one in self.state)")
    assert rewritten(tmp_path, "keep_what_is_detached", source, "layer(x).sum()") == source


CARRY = """from dataclasses import dataclass
import torch
net = torch.nn.LSTM(3, 4)

@dataclass(frozen=True)
class Carry:
    h: torch.Tensor

    def detach(self):
        {}

def step(trainer):
    trainer.carry.detach()
    net(trainer.carry.h)
"""


@pytest.mark.parametrize(("own", "is_kept"), [
    ("return type(self)(self.h.detach())", True), ("return replace(self, h=self.h.detach())", True),
    ("self.h = self.h.detach()", False), ("self.h.detach_()\n        return self", False),
])  # fmt: skip
def test_a_method_that_makes_another_object(own: str, is_kept: bool, tmp_path: pathlib.Path) -> None:
    """What a frozen dataclass gives is thrown away as a tensor's is; what changes the object is not."""
    source = CARRY.format(own)
    after = rewritten(tmp_path, "keep_what_is_detached", source, "net(trainer")
    assert ("trainer.carry = trainer.carry.detach()" in after) is is_kept
    assert is_kept or after == source
