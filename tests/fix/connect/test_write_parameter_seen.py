"""A parameter that is written through `.data` is written so that it gets its gradient, where a trace saw that it gets none."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident
from tests.fix.detach.test_copy_what_is_saved import run
from tests.fix.rewriting import diff_lines, write

pytestmark = pytest.mark.torch

TOP = """import torch
from torch import nn
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3, 4)
        self.head = nn.Linear(4, 1)
        self.token = nn.Parameter(torch.ones(4))
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x, mask):
"""
END = """
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    out = net(torch.randn(2, 5, 3), torch.arange(5) % 2 == 0)
    optimizer.zero_grad()
    out.square().mean().backward()
    optimizer.step()
"""
PLAIN = "h = self.embed(x)\nh[:, mask] = self.token\nreturn self.head(h)"
SAVED = "h = torch.sigmoid(self.embed(x))\nh = h.clone()\nh[:, mask] = self.token\nreturn self.head(h)"
WRONG = {
    "a part": (
        "h = self.embed(x)\nh.data[:, mask] = self.token\nreturn self.head(h)",
        ["-h.data[:, mask] = self.token", "+h[:, mask] = self.token"],
        PLAIN,
    ),
    "a part of what a backward reads": (
        "h = torch.sigmoid(self.embed(x))\nh.data[:, mask] = self.token\nreturn self.head(h)",
        ["-h.data[:, mask] = self.token", "+h = h.clone()", "+h[:, mask] = self.token"],
        SAVED,
    ),
    "through detach": (
        "h = self.embed(x)\nh.detach()[:, mask] = self.token\nreturn self.head(h)",
        ["-h.detach()[:, mask] = self.token", "+h[:, mask] = self.token"],
        PLAIN,
    ),
    "through a name": (
        "h = self.embed(x)\nraw = h.data\nraw[:, mask] = self.token\nreturn self.head(h)",
        ["-raw = h.data", "+raw = h"],
        PLAIN,
    ),
    "an augmented assignment": (
        "h = self.embed(x)\nh.data += self.token\nreturn self.head(h)",
        ["-h.data += self.token", "+h += self.token"],
        "h = self.embed(x)\nreturn self.head(h + self.token)",
    ),
    "a method": (
        "h = torch.tanh(self.embed(x))\nh.data[:, 0].copy_(self.token)\nreturn self.head(h)",
        ["-h.data[:, 0].copy_(self.token)", "+h = h.clone()", "+h[:, 0].copy_(self.token)"],
        "h = torch.tanh(self.embed(x)).clone()\nh[:, 0] = self.token\nreturn self.head(h)",
    ),
    "what the parameter was made into": (
        "h = self.embed(x)\nh.data[:, mask] = self.token.relu() * 2\nreturn self.head(h)",
        ["-h.data[:, mask] = self.token.relu() * 2", "+h[:, mask] = self.token.relu() * 2"],
        "h = self.embed(x)\nh[:, mask] = self.token.relu() * 2\nreturn self.head(h)",
    ),
}
RIGHT = {
    "a write that is seen": PLAIN,
    "a parameter that is not used": "return self.head(self.embed(x))",
    "a parameter that is only printed": "self.token.data.norm()\nreturn self.head(self.embed(x))",
    "a copy for a log": "h = self.embed(x)\nself.seen.data.copy_(self.token)\nreturn self.head(h)",
    "an alias that is used itself": "h = self.embed(x)\nraw = h.detach()\nraw[:, mask] = self.token\nreturn self.head(raw)",
    "values of data": "h = self.embed(x)\nh.data[:, mask] = 0.0\nreturn self.head(h + self.token)",
    "a parameter that trains elsewhere": "h = self.embed(x)\nh.data[:, mask] = self.token\nreturn self.head(h) + self.token.sum()",
    "an average that is kept by hand": "with torch.no_grad():\n    self.token.mul_(0.9).add_(self.embed.bias, alpha=0.1)\nh = self.embed(x)\nh.data[:, mask] = self.token\nreturn self.head(h)",
}  # fmt: skip


def program(body: str) -> str:
    return TOP + "".join(f"        {line}\n" for line in body.split("\n")) + END


def mended(folder: pathlib.Path, text: str) -> str:
    """What the edit makes of a program that has been traced; the program as it was where there is none."""
    import gradfix

    with gradfix.trace() as seen:
        run(folder, "train", text)
    context = Context(program=write(folder, {"train.py": text}), incident=Incident(traced=seen.lines))
    found = list(find_codemod("write_parameter_seen")(context))
    assert {one.applicability for one in found} <= {"unsafe"}
    return splice(text, found[0].edits) or "" if found else text


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """What gets its gradient, needs none, or never reaches the loss."""
    pytest.importorskip("torch")
    text = program(body)
    assert mended(tmp_path, text) == text


@pytest.mark.parametrize(("body", "changes", "right"), WRONG.values(), ids=WRONG)
def test_the_parameter_gets_its_gradient(body: str, changes: list[str], right: str, tmp_path: pathlib.Path) -> None:
    """The gradients after the edit are those of the program as its author would write it."""
    torch = pytest.importorskip("torch")
    text = program(body)
    after = mended(tmp_path, text)
    assert [line[:1] + line[1:].lstrip() for line in diff_lines(text, after)] == changes
    expected = run(tmp_path, "right", program(right))
    assert all(map(torch.equal, run(tmp_path, "fixed", after), expected))
