"""A gradient gets the form of what it belongs to."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "in its form": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
p.grad = piece.view_as(p)
""",
        "p.grad",
    ),
    "a gradient for a vector": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
y = net(x)
g = torch.randn(4, 2)
y.backward(g)
""",
        "y.backward",
    ),
    "no gradient": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward()
""",
        "loss.backward",
    ),
}
WRONG = {
    "a flat piece": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
p.grad = piece
""",
        "p.grad",
        ["-p.grad = piece", "+p.grad = piece.view_as(p)"],
    ),
    "a piece that is computed": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
p.grad = flat[0:4] / n
""",
        "p.grad",
        ["-p.grad = flat[0:4] / n", "+p.grad = (flat[0:4] / n).view_as(p)"],
    ),
    "a one for a scalar": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
one = torch.ones(1)
loss = net(x).sum()
loss.backward(one)
""",
        "loss.backward",
        ["-loss.backward(one)", "+loss.backward()"],
    ),
    "a one in the call": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward(torch.FloatTensor([1.0]))
""",
        "loss.backward",
        ["-loss.backward(torch.FloatTensor([1.0]))", "+loss.backward()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "give_gradient_form", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "give_gradient_form", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "give_gradient_form", after, still) == after
