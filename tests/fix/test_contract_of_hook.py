"""A module's backward hook returns a tuple or None, and one kind of hook is used."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "a tuple": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
def hook(module, grad_input, grad_output):
    return (grad_input[0] * 2,)
net.register_full_backward_hook(hook)
""",
        None,
    ),
    "nothing": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
def hook(module, grad_input, grad_output):
    print(grad_output[0].norm())
net.register_full_backward_hook(hook)
""",
        None,
    ),
    "the gradients as they came": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
def hook(module, grad_input, grad_output):
    return grad_input
net.register_full_backward_hook(hook)
""",
        None,
    ),
    "a hook of a tensor": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def hook(grad):
    return grad * 2
x.register_hook(hook)
""",
        None,
    ),
}
WRONG = {
    "a bare tensor": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
def hook(module, grad_input, grad_output):
    return grad_input[0] * 2
net.register_full_backward_hook(hook)
""",
        None,
        ["-    return grad_input[0] * 2", "+    return (grad_input[0] * 2,)"],
    ),
    "a lambda": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
net.register_full_backward_hook(lambda m, gi, go: gi[0].clamp(-1, 1))
""",
        None,
        [
            "-net.register_full_backward_hook(lambda m, gi, go: gi[0].clamp(-1, 1))",
            "+net.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(-1, 1),))",
        ],
    ),
    "a call": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
def hook(module, grad_input, grad_output):
    return torch.clamp(grad_input[0], -1, 1)
net.register_full_backward_hook(hook)
""",
        None,
        ["-    return torch.clamp(grad_input[0], -1, 1)", "+    return (torch.clamp(grad_input[0], -1, 1),)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "contract_of_hook", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "contract_of_hook", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "contract_of_hook", after, still) == after
