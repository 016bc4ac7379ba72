"""A recurrent layer's first state gets the dtype of its input."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

MESSAGE = "Input and hidden tensors are not the same dtype, found input tensor with Double and hidden tensor with Float"
MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.{layer}(3, 8, batch_first=True)

    def start(self, batch):
        return torch.zeros(1, batch, 8)

    def forward(self, x):
        {body}
        return out[:, -1]
"""
WRONG = {
    "made by a method": (
        "GRU",
        "out, _ = self.rnn(x, self.start(x.size(0)))",
        "+        out, _ = self.rnn(x, self.start(x.size(0)).to(x.dtype))",
    ),
    "made on the line before": (
        "GRU",
        "h = torch.zeros(1, x.size(0), 8)\n        out, _ = self.rnn(x, h)",
        "+        h = torch.zeros(1, x.size(0), 8, dtype=x.dtype)",
    ),
    "two states": (
        "LSTM",
        "out, _ = self.rnn(x, (self.start(len(x)), self.start(len(x))))",
        "+        out, _ = self.rnn(x, (self.start(len(x)).to(x.dtype), self.start(len(x)).to(x.dtype)))",
    ),
}


@pytest.mark.parametrize(("layer", "body", "wanted"), WRONG.values(), ids=WRONG)
def test_the_state_is_made_like_the_input(layer: str, body: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """Where it is made, if that is in sight; else where it is handed over."""
    source = MODEL.format(layer=layer, body=body)
    after = rewritten(tmp_path, "state_like_input", source, "self.rnn(x", message=MESSAGE)
    assert diff_lines(source, after)[1:] == [wanted]


def test_other_layers_and_other_failures_stay(tmp_path: pathlib.Path) -> None:
    """A linear layer has no state, and a mismatch outside of the layer is another matter."""
    source = MODEL.format(layer="GRU", body="out, _ = self.rnn(x, self.start(x.size(0)))")
    other = "mat1 and mat2 must have the same dtype, but got Float and Double"
    assert rewritten(tmp_path, "state_like_input", source, "self.rnn(x", message=other) == source
    linear = MODEL.format(layer="Linear", body="out = self.rnn(x, self.start(x.size(0)))")
    assert rewritten(tmp_path, "state_like_input", linear, "self.rnn(x", message=MESSAGE) == linear
