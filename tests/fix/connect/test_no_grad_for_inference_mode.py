"""Inference mode becomes `no_grad` where training uses again what the block makes."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "no_grad already": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
with torch.no_grad():
    y = net(x)
loss = net(y @ y.T[:, :3])
""",
        "loss =",
    ),
    "switched off": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
with torch.inference_mode(False):
    y = net(x)
loss = net(x)
""",
        "loss =",
    ),
    "a function of that name": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
with inference_mode():
    y = net(x)
""",
        "y =",
    ),
}
WRONG = {
    "an attribute that is a guard later": (
        """import torch
from torch import nn
class Runner:
    guard = torch.inference_mode
    def play(self, net, x):
        with self.guard():
            return net(x)
net = nn.Linear(3, 3)
y = Runner().play(net, torch.randn(4, 3))
loss = net(y).sum()
""",
        "loss =",
        ["-    guard = torch.inference_mode", "+    guard = torch.no_grad"],
    ),
    "a block": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
with torch.inference_mode():
    y = net(x)
loss = F.linear(y, net.weight.T)
""",
        "loss =",
        ["-with torch.inference_mode():", "+with torch.no_grad():"],
    ),
    "a decorator": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
@torch.inference_mode()
def features(x):
    return net(x)
y = features(x)
loss = F.linear(y, net.weight.T)
""",
        "loss =",
        ["-@torch.inference_mode()", "+@torch.no_grad()"],
    ),
    "imported by name": (
        """from torch import inference_mode, nn
with inference_mode():
    y = net(x)
loss = head(y)
""",
        "loss =",
        [
            "-from torch import inference_mode, nn",
            "-with inference_mode():",
            "+from torch import no_grad, nn",
            "+with no_grad():",
        ],
    ),
    "a cache of a module": (
        """\"\"\"A table cached during an evaluation in inference mode is used again in training.\"\"\"

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.project, self.table = nn.Linear(dim, dim), None

    def forward(self, x):
        if self.table is None:
            self.table = torch.cos(torch.arange(x.shape[1]))[:, None]
        return self.project(x) * self.table


torch.manual_seed(0)
model = Attention(8)
with torch.inference_mode():
    model.eval()(torch.randn(2, 5, 8))
loss = model.train()(torch.randn(2, 5, 8)).pow(2).mean()
loss.backward()
""",
        "loss = model",
        ["-with torch.inference_mode():", "+with torch.no_grad():"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "no_grad_for_inference_mode", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "no_grad_for_inference_mode", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "no_grad_for_inference_mode", after, still) == after
