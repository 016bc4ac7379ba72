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
ONE, TWO = "Expected target size [1, 2], got [16]", "Expected input batch_size (2) to match target batch_size (16)."
DEEP = NET.replace("batch_first", "num_layers=2, batch_first")
RANKS = "Tensors must have same number of dimensions: got 3 and 2"
JOIN = NET.replace("from torch import nn", "import torch\nfrom torch import nn").replace(
    "self.out(last)", "torch.cat([last, x[:, 0]], 1)"
)
WAYS = {
    "a GRU": (NET, ONE, ["return self.out(last[-1])"]),
    "an LSTM": (LSTM.replace("states, last", "_, (last, _)"), ONE, ["return self.out(last[-1])"]),
    "two layers": (DEEP, TWO, ["return self.out(last[-1])"]),
    "a batch of another size": (DEEP, ONE, []),
    "both states of an LSTM": (LSTM, ONE, []),
    "both ways": (NET.replace("batch_first", "bidirectional"), ONE, []),
    "the states of each step": (NET.replace("self.out(last)", "self.out(states)"), ONE, []),
    "taken already": (NET.replace("self.out(last)", "self.out(last[-1])"), ONE, []),
    "bound anew": (NET.replace("        return", "        last = last.squeeze(0)\n        return"), ONE, []),
    "the next call's state": (NET.replace("self.out(last)", "self.rnn(x, last)"), ONE, []),
}


@pytest.mark.parametrize(("source", "message", "wanted"), WAYS.values(), ids=WAYS)
def test_the_last_layer_is_taken(source: str, message: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """Where the refused shape has the layers of one that runs one way in place of the batch."""
    assert changed_lines(source, rewritten(tmp_path, "last_layer_of_state", source, message=message)) == wanted


@pytest.mark.parametrize(("source", "wanted"), [
    (JOIN, ["return torch.cat([last[-1], x[:, 0]], 1)"]),
    (JOIN.replace("[last, x[:, 0]]", "[states, x[:, 0]]"), []),
    (JOIN.replace("batch_first", "bidirectional"), []),
])  # fmt: skip
def test_it_is_joined_without_its_layers(source: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """A join refuses what has an axis more."""
    at = source.splitlines()[-1].strip()
    assert changed_lines(source, rewritten(tmp_path, "last_layer_of_state", source, at, message=RANKS)) == wanted
