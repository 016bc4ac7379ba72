"""The first state of a recurrent layer has the batch size of its input; other sizes stay."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

FULL = "Expected hidden[0] size (2, 3, 8), got [2, 5, 8]"
NET = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, batch_size=5):
        super().__init__()
        self.batch_size = batch_size
        self.rnn = nn.{layer}
{body}"""
BESIDE = """
    def forward(self, x):
        h = torch.zeros(2, self.batch_size, 8)
        out, _ = self.rnn(x, h)
        return out
"""
METHOD = """
    def initial(self):
        shape = (2, self.batch_size, 8)
        return torch.zeros(shape), torch.zeros(shape)

    def forward(self, x):
        out, _ = self.rnn(x, self.initial())
        return out
"""
STATES = """
    def initial(self):
        return torch.zeros(self.batch_size, 8)

    def forward(self, x):
        h = self.initial()
        for frame in x.unbind(1):
            h = torch.tanh(self.rnn(frame) + h)
        return h
"""
WRONG = {
    "beside the call": ("GRU(4, 8, 2, batch_first=True)", BESIDE, FULL, ["h = torch.zeros(2, x.size(0), 8)"]),
    "sequence first": ("GRU(4, 8, 2)", BESIDE, FULL, ["h = torch.zeros(2, x.size(1), 8)"]),
    "a method": (
        "LSTM(4, 8, 2, batch_first=True)", METHOD, FULL,
        ["def initial(self, batch):", "shape = (2, batch, 8)", "out, _ = self.rnn(x, self.initial(x.size(0)))"],
    ),
    "a layer of its own": (
        "Linear(4, 8)", STATES, "The size of tensor a (3) must match the size of tensor b (5) at non-singleton dimension 0",
        ["def initial(self, batch):", "return torch.zeros(batch, 8)", "h = self.initial(x.size(0))"],
    ),
    "a cell": (
        "GRUCell(4, 8)",
        "\n    def forward(self, x):\n        h = x.new_zeros(self.batch_size, 8)\n        return self.rnn(x, h)\n",
        "Input batch size 3 doesn't match hidden0 batch size 5",
        ["h = x.new_zeros(x.size(0), 8)"],
    ),
}  # fmt: skip
RIGHT = {
    "another width": ("GRU(4, 8, 2, batch_first=True)", BESIDE, "Expected hidden[0] size (2, 5, 8), got [2, 5, 16]"),
    "the size of the input": ("GRU(4, 8, 2, batch_first=True)", BESIDE.replace("self.batch_size", "x.size(0)"), FULL),
    "a mismatch of widths": (
        "Linear(4, 8)",
        STATES,
        "The size of tensor a (8) must match the size of tensor b (4) at non-singleton dimension 1",
    ),
    "no recurrent layer": ("Linear(4, 8)", BESIDE, FULL),
}


@pytest.mark.parametrize(("layer", "body", "message", "wanted"), WRONG.values(), ids=WRONG)
def test_the_size_of_the_input(layer: str, body: str, message: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """The state is made for the input; a second time nothing is left to do."""
    source = NET.format(layer=layer, body=body)
    after = rewritten(
        tmp_path, "state_of_batch", source, None if layer == "Linear(4, 8)" else "self.rnn(x, ", message=message
    )
    assert changed_lines(source, after) == wanted
    assert (
        rewritten(
            tmp_path, "state_of_batch", after, None if layer == "Linear(4, 8)" else "self.rnn(x, ", message=message
        )
        == after
    )


@pytest.mark.parametrize(("layer", "body", "message"), RIGHT.values(), ids=RIGHT)
def test_left_alone(layer: str, body: str, message: str, tmp_path: pathlib.Path) -> None:
    """What differs in another dimension, or is no state of a recurrent layer."""
    source = NET.format(layer=layer, body=body)
    assert (
        rewritten(
            tmp_path, "state_of_batch", source, None if layer == "Linear(4, 8)" else "self.rnn(x, ", message=message
        )
        == source
    )


@pytest.mark.torch
@pytest.mark.parametrize("name", WRONG)
def test_the_last_batch_goes_through(name: str, tmp_path: pathlib.Path) -> None:
    """The module as it was refuses a smaller batch; mended it takes one, and gives a full one what it gave."""
    torch = pytest.importorskip("torch")
    layer, body, message, _ = WRONG[name]
    source = NET.format(layer=layer, body=body)
    after = rewritten(
        tmp_path, "state_of_batch", source, None if layer == "Linear(4, 8)" else "self.rnn(x, ", message=message
    )
    before, mended = {}, {}
    exec(source, before)
    exec(after, mended)
    torch.manual_seed(0)
    old = before["Net"]()
    new = mended["Net"]()
    new.load_state_dict(old.state_dict())
    sizes = {"a cell": lambda n: (n, 4), "sequence first": lambda n: (6, n, 4)}.get(name, lambda n: (n, 6, 4))
    with pytest.raises(RuntimeError):
        old(torch.randn(sizes(3)))
    assert new(torch.randn(sizes(3))).requires_grad
    full = torch.randn(sizes(5))
    assert torch.equal(old(full), new(full))


GIVEN = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, batch_size=5):
        super().__init__()
        self.batch_size = batch_size
        self.cells = nn.ModuleList(nn.GRUCell(i, 8) for i in (4, 8))

    def start(self, x):
        return [x.new_zeros(self.batch_size, 8) for _ in self.cells]

    def forward(self, x):
        states = self.start(x)
        for t in range(x.size(1)):
            h = x[:, t]
            for i, cell in enumerate(self.cells):
                states[i] = h = cell(h, states[i])
        return h
"""


@pytest.mark.torch
def test_a_method_that_gets_the_batch(tmp_path: pathlib.Path) -> None:
    """Its own tensor has the size, in the dimension in which the live one had it."""
    torch = pytest.importorskip("torch")
    message = "Input batch size 3 doesn't match hidden0 batch size 5"
    seen = {"x": "[3, 6, 4] float32", "h": "[3, 4] float32"}
    after = rewritten(tmp_path, "state_of_batch", GIVEN, "cell(h", message=message, tensors=seen)
    assert changed_lines(GIVEN, after) == ["return [x.new_zeros(x.size(0), 8) for _ in self.cells]"]
    space: dict = {}
    exec(after, space)  # noqa: S102
    assert space["Net"]()(torch.randn(3, 6, 4)).shape == (3, 8)
