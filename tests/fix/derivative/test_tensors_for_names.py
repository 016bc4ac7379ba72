"""Autograd is given tensors, not pairs of names and tensors."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "parameters": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
g = torch.autograd.grad(loss, list(net.parameters()))
""",
        None,
    ),
    "names taken off": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
g = torch.autograd.grad(loss, [p for n, p in net.named_parameters()])
""",
        None,
    ),
    "another function": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
g = dict(net.named_parameters())
""",
        None,
    ),
}
WRONG = {
    "a list of pairs": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
g = torch.autograd.grad(loss, list(net.named_parameters()))
""",
        None,
        [
            "-g = torch.autograd.grad(loss, list(net.named_parameters()))",
            "+g = torch.autograd.grad(loss, list(net.parameters()))",
        ],
    ),
    "inputs of backward": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss.backward(inputs=list(net.named_parameters()))
""",
        None,
        ["-loss.backward(inputs=list(net.named_parameters()))", "+loss.backward(inputs=list(net.parameters()))"],
    ),
    "a tuple of pairs": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
g = torch.autograd.grad(loss, tuple(net.named_parameters()), create_graph=True)
""",
        None,
        [
            "-g = torch.autograd.grad(loss, tuple(net.named_parameters()), create_graph=True)",
            "+g = torch.autograd.grad(loss, tuple(net.parameters()), create_graph=True)",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "tensors_for_names", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "tensors_for_names", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "tensors_for_names", after, still) == after
