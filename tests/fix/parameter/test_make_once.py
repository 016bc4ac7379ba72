"""What a forward makes anew each time is made once, in `__init__`."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident, LogLine
from explainer.model.verification import MADE_ANEW
from tests.fix.rewriting import changed_lines, diff_lines, failed, rewritten, write

HEAD = """import torch
from torch import nn
SIZE = 3
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.first = nn.Linear(8, width)
        MORE
"""
FORWARD = "    def forward(self, x):\n        h = self.first(x)\n"


def net(body: str, more: str = "pass", rest: str = "") -> str:
    """A model whose forward ends in some lines."""
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    return HEAD.replace("MORE", more) + FORWARD + lines + rest


STAY = {
    "of the input's size": net("scale = nn.Parameter(torch.ones(h.shape[-1]))  # here\nreturn h * scale"),
    "a layer for each round": net("for _ in range(2):\n    h = nn.Linear(self.width, self.width)(h)  # here\nreturn h"),
    "in a branch": net("if self.training:\n    h = h * nn.Parameter(torch.ones(self.width))  # here\nreturn h"),
    "of what changes": net("return h * nn.Parameter(torch.ones(self.width))  # here", rest="    def grow(self):\n        self.width += 1\n"),
    "for each of two inputs": net(
        "return self.to_key(h) * self.to_key(x)",
        rest="    def to_key(self, h):\n        return nn.Linear(self.width, 4)(h)  # here\n",
    ),
    "in no module": "import torch\nfrom torch import nn\nclass Centres:\n    def __call__(self, x):\n        return x - nn.Parameter(torch.zeros(3))  # here\n",
    "an attribute that is set elsewhere": net("self.head = nn.Linear(self.width, 1)  # here\nreturn self.head(h)", "self.head = None"),
    "a local that is bound twice": net("n = 2\nn = len(x)\nreturn h * nn.Parameter(torch.ones(n))  # here"),
    "behind what takes all parameters": net(
        "return h * nn.Parameter(torch.ones(self.late))  # here", "self.opt = torch.optim.SGD(self.parameters(), lr=0.1)\n        self.late = 3"
    ),
}  # fmt: skip
MOVE = {
    "a parameter": (
        net("scale = nn.Parameter(torch.ones(self.width))  # here\nreturn h * scale"),
        ["self.scale = nn.Parameter(torch.ones(self.width))", "scale = self.scale  # here"],
    ),
    "a layer in an expression": (
        net("return nn.Linear(self.width, SIZE)(h)  # here"),
        ["self.linear = nn.Linear(self.width, SIZE)", "return self.linear(h)  # here"],
    ),
    "a parameter in an expression": (
        net("return h * torch.nn.Parameter(torch.ones(1))  # here"),
        ["self.weight = torch.nn.Parameter(torch.ones(1))", "return h * self.weight  # here"],
    ),
    "an attribute": (
        net("self.head = nn.Linear(self.width, 1)  # here\nreturn self.head(h)"),
        ["self.head = nn.Linear(self.width, 1)"],
    ),
    "on the device of the input": (
        net("bias = nn.Parameter(torch.zeros(self.width, device=x.device))  # here\nreturn h + bias"),
        ["self.bias = nn.Parameter(torch.zeros(self.width))", "bias = self.bias  # here"],
    ),
    "of a local that stands for an attribute": (
        net("n, m = 1, 2\nsize = 2 * self.width\nmix = nn.Linear(size, size)  # here\nreturn mix(h)"),
        ["self.mix = nn.Linear((2 * self.width), (2 * self.width))", "mix = self.mix  # here"],
    ),
    "a list of layers": (
        net("heads = [nn.Linear(self.width, 1) for _ in range(SIZE)]  # here\nreturn [head(h) for head in heads]"),
        ["self.heads = nn.ModuleList(nn.Linear(self.width, 1) for _ in range(SIZE))", "heads = self.heads  # here"],
    ),
    "in a method that is called once": (
        net("return self.project(h)", rest="    def project(self, h):\n        return nn.Linear(self.width, 1)(h)  # here\n"),
        ["self.linear = nn.Linear(self.width, 1)", "return self.linear(h)  # here"],
    ),
    "before an optimizer of the module's own": (
        net("return nn.Linear(self.width, 1)(h)  # here", "self.opt = torch.optim.SGD(self.parameters(), lr=0.1)"),
        ["self.linear = nn.Linear(self.width, 1)", "return self.linear(h)  # here"],
    ),
    "over several lines": (
        net("block = nn.Sequential(\n    nn.Linear(self.width, 4),\n    nn.Tanh(),\n)\nreturn block(h)").replace("4),", "4),  # here"),
        ["self.block = nn.Sequential(", "nn.Linear(self.width, 4),  # here", "nn.Tanh(),", ")", "block = self.block"],
    ),
    "a name that is taken": (
        net("scale = nn.Parameter(torch.ones(1))  # here\nreturn h * scale * self.scale", "self.scale = 2.0"),
        ["self.own_scale = nn.Parameter(torch.ones(1))", "scale = self.own_scale  # here"],
    ),
    "a class without `__init__`": (
        "import torch\nfrom torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n        return nn.Linear(3, 1)(x)  # here\n",
        ["def __init__(self):", "super().__init__()", "self.linear = nn.Linear(3, 1)", "", "return self.linear(x)  # here"],
    ),
}  # fmt: skip


def mended(source: str, folder: pathlib.Path) -> str:
    """The program after the edit for the lines that are marked."""
    lines = [number for number, line in enumerate(source.splitlines(), 1) if line.endswith("# here")]
    log = tuple(LogLine(text=f"seen in the live program: train.py:{one} makes a Linear {MADE_ANEW}") for one in lines)
    context = Context(program=write(folder, {"train.py": source}), incident=Incident(log=log))
    found = list(find_codemod("make_once")(context))
    assert found[0].culprit.line in (lines[0], lines[0] - 1)
    after = splice(source, found[0].edits)
    assert after is not None
    compile(after, "train.py", "exec")
    return after


@pytest.mark.parametrize("source", STAY.values(), ids=STAY)
def test_it_stays(source: str, tmp_path: pathlib.Path) -> None:
    """Only the line is told where `__init__` does not know what it takes, or each run may be meant to have its own."""
    assert mended(source, tmp_path) == source


@pytest.mark.parametrize(("source", "lines"), MOVE.values(), ids=MOVE)
def test_it_is_made_once(source: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    """Behind the attributes that it is made of."""
    after = mended(source, tmp_path)
    added = [line[1:].strip() for line in diff_lines(source, after) if line.startswith("+")]
    assert added == lines


def test_all_or_nothing(tmp_path: pathlib.Path) -> None:
    """What one class makes is made in one edit; with one of two alone the other would still be thrown away."""
    both = net("h = nn.Linear(self.width, 4)(h)  # here\nreturn nn.Linear(4, SIZE)(h)  # here")
    assert changed_lines(both, mended(both, tmp_path)) == [
        "self.linear = nn.Linear(self.width, 4)",
        "self.own_linear = nn.Linear(4, SIZE)",
        "h = self.linear(h)  # here",
        "return self.own_linear(h)  # here",
    ]
    one = net("h = nn.Linear(len(x), 4)(h)  # here\nreturn nn.Linear(4, SIZE)(h)  # here")
    assert mended(one, tmp_path) == one


def test_an_optimizer_without_parameters(tmp_path: pathlib.Path) -> None:
    """A model all of whose layers are made in its forward has none when the optimizer is made; another one's are left alone."""
    other = (
        net("return nn.Linear(self.width, 1)(h)")
        .replace("Net", "Other")
        .replace("import torch\nfrom torch import nn\n", "")
    )
    source = MOVE["a class without `__init__`"][0] + other + "opt = torch.optim.SGD(Net().parameters(), lr=0.1)\n"
    after = rewritten(tmp_path, "make_once", source, "opt =", message="optimizer got an empty parameter list")
    assert "        self.linear = nn.Linear(3, 1)\n" in after
    assert other in after


def test_nothing_is_moved_unseen(tmp_path: pathlib.Path) -> None:
    """Another failure says nothing of it."""
    program = write(tmp_path, {"train.py": MOVE["a parameter"][0]})
    assert list(find_codemod("make_once")(Context(program=program, incident=failed()))) == []
