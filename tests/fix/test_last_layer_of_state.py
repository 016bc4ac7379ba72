"""The state of a recurrent layer is taken layer by layer."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

NET = """from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x):
        states, last = self.rnn(x)
        return self.out(last)
"""
LSTM = NET.replace("nn.GRU", "nn.LSTM")
WAYS = {
    "a GRU": (NET, ["return self.out(last[-1])"]),
    "an LSTM": (LSTM.replace("states, last", "_, (last, _)"), ["return self.out(last[-1])"]),
    "both states of an LSTM": (LSTM, []),
    "both ways": (NET.replace("batch_first", "bidirectional"), []),
    "the states of each step": (NET.replace("self.out(last)", "self.out(states)"), []),
    "taken already": (NET.replace("self.out(last)", "self.out(last[-1])"), []),
    "bound anew": (NET.replace("        return", "        last = last.squeeze(0)\n        return"), []),
    "the next call's state": (NET.replace("self.out(last)", "self.rnn(x, last)"), []),
}


@pytest.mark.parametrize(("source", "wanted"), WAYS.values(), ids=WAYS)
def test_the_last_layer_is_taken(source: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """Where a layer is given the whole state of one that runs one way."""
    assert changed_lines(source, rewritten(tmp_path, "last_layer_of_state", source)) == wanted
