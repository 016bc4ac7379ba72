"""A layer is called as it is, not through activation checkpointing."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "no checkpointing": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
y = net(x)
""",
        "y =",
    ),
    "another function of that name": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
from tools import checkpoint
y = checkpoint(net, x)
""",
        "y =",
    ),
}
WRONG = {
    "with its import": (
        """import torch
from torch import nn
from torch.func import functional_call, grad
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, inputs):
        return checkpoint(self.layer, inputs, use_reentrant=False).pow(2).mean()


torch.manual_seed(0)
model, inputs = Block(), torch.rand(8, 4)
gradients = grad(lambda parameters: functional_call(model, parameters, (inputs,)))(dict(model.named_parameters()))
for name, parameter in model.named_parameters():
    parameter.grad = gradients[name]
""",
        "return checkpoint",
        [
            "-from torch.utils.checkpoint import checkpoint",
            "-        return checkpoint(self.layer, inputs, use_reentrant=False).pow(2).mean()",
            "+        return self.layer(inputs).pow(2).mean()",
        ],
    ),
    "through the module": (
        """import torch.utils.checkpoint as cp
y = cp.checkpoint(net, x, mask, use_reentrant=False)
""",
        "y =",
        ["-y = cp.checkpoint(net, x, mask, use_reentrant=False)", "+y = net(x, mask)"],
    ),
    "keywords of the layer": (
        """from torch.utils.checkpoint import checkpoint
y = checkpoint(self.block, x, use_reentrant=False, mask=m)
""",
        "y =",
        [
            "-from torch.utils.checkpoint import checkpoint",
            "-y = checkpoint(self.block, x, use_reentrant=False, mask=m)",
            "+y = self.block(x, mask=m)",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "without_checkpointing", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "without_checkpointing", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "without_checkpointing", after, still) == after
