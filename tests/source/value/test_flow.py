"""Which expressions a gradient passes through, followed through calls, modules and files."""

from __future__ import annotations

import ast

import pytest

from explainer.source.program import read_program
from explainer.source.value.flow import Reach, flow_of

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 4)

    def forward(self, x):
        mask = (x > 0).float()
        return self.f(x) * mask


def spread(v):
    return v.std(0)


x = torch.randn(8, 4)
net = Net().to("cpu")
"""

CASES = {
    "data": ("probe = x * 2", Reach.NONE),
    "a comparison of an output": ("probe = net(x) > 0", Reach.NONE),
    "a detached output": ("probe = net(x).detach()", Reach.NONE),
    "a number of an output": ("probe = net(x).sum().item()", Reach.NONE),
    "a shape": ("probe = net(x).shape[0]", Reach.NONE),
    "zeros like an output": ("probe = torch.zeros_like(net(x))", Reach.NONE),
    "under no_grad": ("with torch.no_grad():\n    probe = net(x)", Reach.NONE),
    "a helper on data": ("probe = spread(x)", Reach.NONE),
    "a module's output": ("probe = net(x)", Reach.SURE),
    "part of an output": ("probe = net(x)[0]", Reach.SURE),
    "through names": ("a = net(x)\nb = a + 1\nprobe = b.mean()", Reach.SURE),
    "through a helper": ("probe = spread(net(x))", Reach.SURE),
    "one of some layers that are unpacked": (
        "f, g = (nn.Linear(4, 4) for _ in range(2))\nprobe = g(x)",
        Reach.SURE,
    ),
    "one of some layers in a list": ("f, g = [nn.Linear(n, 4) for n in (4, 3)]\nprobe = f(x)", Reach.SURE),
    "a parameter": ("w = nn.Parameter(torch.ones(4))\nprobe = w * x", Reach.SURE),
    "a tensor that requires grad": ("w = torch.ones(4, requires_grad=True)\nprobe = w.exp()", Reach.SURE),
    "an unpacked output": ("a, b = net(x).chunk(2)\nprobe = b", Reach.SURE),
    "a parameter of a function that nobody calls": ("def free(v):\n    probe = v * 2\n    return probe", Reach.MAYBE),
}


@pytest.mark.parametrize(("body", "wanted"), CASES.values(), ids=CASES)
def test_reach(tmp_path, body: str, wanted: Reach) -> None:
    """The value given to `probe` is reached by a gradient, or not, or perhaps."""
    (tmp_path / "train.py").write_text(f"{HEAD}{body}\n")
    program = read_program(str(tmp_path), ["train.py"])
    (file,) = program.order
    (value,) = [
        node.value for node in file.walk() if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "probe"
    ]
    assert flow_of(program).reach_of(value, file) == wanted
