"""An optimizer that was given a module gets its parameters."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(x)


net = Net()
weights = [torch.zeros(3, requires_grad=True)]
"""
WRONG = {
    "a module": ("opt = torch.optim.SGD(net, lr=0.1)", "opt = torch.optim.SGD(net.parameters(), lr=0.1)"),
    "a module of torch": ("opt = torch.optim.SGD(params=net.head, lr=0.1)", "opt = torch.optim.SGD(params=net.head.parameters(), lr=0.1)"),
    "a state dict": ("opt = torch.optim.Adam(net.state_dict(), lr=0.1)", "opt = torch.optim.Adam(net.parameters(), lr=0.1)"),
}  # fmt: skip
RIGHT = {
    "a list": "opt = torch.optim.SGD(weights, lr=0.1)",
    "parameters": "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
    "another library": "opt = library.SGD(net, lr=0.1)",
}


@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path: pathlib.Path, line: str, wanted: str) -> None:
    """A second time nothing is left to do."""
    source = f"{HEAD}{line}\n"
    after = rewritten(tmp_path, "parameters_of_module", source, "opt =")
    assert changed_lines(source, after) == [wanted]
    assert rewritten(tmp_path, "parameters_of_module", after, "opt =") == after


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path: pathlib.Path, line: str) -> None:
    """What is a list already, or no optimizer of torch, is left alone."""
    source = f"{HEAD}{line}\n"
    assert rewritten(tmp_path, "parameters_of_module", source, "opt =") == source
