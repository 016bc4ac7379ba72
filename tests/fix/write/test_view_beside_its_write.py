"""A view and its write stand on the same side of a block without grad."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "both outside": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
h = net(x)
part = h[:, :1]
part += 1
""",
        "part += 1",
    ),
    "both inside": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
with torch.no_grad():
    row = net.weight[0]
    row.zero_()
""",
        "row.zero_",
    ),
    "another name": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
with torch.no_grad():
    a = net.weight[0]
b = x[0]
b += 1
""",
        "b += 1",
    ),
}
WRONG = {
    "a window that is trained": (
        """\"\"\"A window on the hidden state is cut under no_grad and written with grad mode on.\"\"\"

import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(6, 8), nn.Linear(8, 2)
bias = nn.Parameter(torch.zeros(4))
hidden = encoder(torch.randn(5, 6))
with torch.no_grad():
    window = hidden[:, :4]
window += bias
loss = nn.functional.cross_entropy(head(torch.tanh(hidden)), torch.tensor([0, 1, 1, 0, 1]))
loss.backward()
""",
        "window += bias",
        ["-with torch.no_grad():", "-    window = hidden[:, :4]", "+window = hidden[:, :4]"],
    ),
    "a row that is set": (
        """\"\"\"A row of a weight is looked up in inference mode and written after the block.\"\"\"

import torch
from torch import nn

torch.manual_seed(0)
embed, head = nn.Embedding(12, 8), nn.Linear(8, 12)
with torch.inference_mode():
    padding_row = embed.weight[0]
padding_row.zero_()
tokens = torch.randint(12, (3, 5))
loss = nn.functional.cross_entropy(head(embed(tokens)).flatten(0, 1), tokens.flatten())
loss.backward()
""",
        "padding_row.zero_()",
        ["-with torch.inference_mode():", "+with torch.no_grad():", "-padding_row.zero_()", "+    padding_row.zero_()"],
    ),
    "a row of a weight": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
with torch.no_grad():
    row = net.weight[0]
row.mul_(0.5)
""",
        "row.mul_",
        ["-row.mul_(0.5)", "+    row.mul_(0.5)"],
    ),
}


CANVAS = """import torch
from torch import nn
scale = nn.Parameter(torch.ones(3))
class Canvas:
    def __init__(self):
        self.pixels = torch.zeros(4, 3)
    @torch.no_grad()
    def window(self, row):
        return self.pixels[row]
    def add(self, row):
        window = self.window(row)
        window += scale
"""


def test_a_function_that_gives_the_view(tmp_path: pathlib.Path) -> None:
    """Its decorator goes where what is written has a graph, and stays where it has none."""
    after = rewritten(tmp_path, "view_beside_its_write", CANVAS, "window += scale")
    assert diff_lines(CANVAS, after) == ["-    @torch.no_grad()"]
    plain = CANVAS.replace("window += scale", "window += 1.0")
    assert rewritten(tmp_path, "view_beside_its_write", plain, "window += 1.0") == plain


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "view_beside_its_write", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "view_beside_its_write", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "view_beside_its_write", after, still) == after
