"""Layers that are to learn leave the block that prepares their data; layers that are frozen on purpose stay in it."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident
from tests.fix.detach.test_copy_what_is_saved import run
from tests.fix.rewriting import diff_lines, write

pytestmark = pytest.mark.torch

TOP = """import copy
import torch
from torch import nn
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.second, self.head = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 1)
        self.token = nn.Parameter(torch.ones(4))
        self.register_buffer("scale", torch.full((3,), 0.5))

    def prepare(self, x):
        return (x - x.mean()) * self.scale

    def encode(self, x):
        return self.stem(x).relu()

    def forward(self, x):
"""
END = """
net = Net()
{extra}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    out = net(torch.randn(5, 3))
    optimizer.zero_grad()
    out.square().mean().backward()
    optimizer.step()
"""
BLOCK = "with torch.no_grad():\n    x = self.prepare(x)\n    x = self.stem(x)\nreturn self.head(x)"
MEND = "with torch.no_grad():\n    x = self.prepare(x)\nx = self.stem(x)\nreturn self.head(x)"
WRONG = {
    "a layer": (BLOCK, ["-x = self.stem(x)", "+x = self.stem(x)"], MEND),
    "two layers and what is between them": (
        "with torch.no_grad():\n    x = self.prepare(x)\n    x = self.stem(x)\n    x = x.relu()\n    x = self.second(x)\nreturn self.head(x)",
        ["-x = self.stem(x)", "-x = x.relu()", "-x = self.second(x)", "+x = self.stem(x)", "+x = x.relu()", "+x = self.second(x)"],
        "x = self.stem(self.prepare(x)).relu()\nreturn self.head(self.second(x))",
    ),
    "a layer in a method": (
        "with torch.no_grad():\n    x = self.prepare(x)\n    x = self.encode(x)\nreturn self.head(x)",
        ["-x = self.encode(x)", "+x = self.encode(x)"],
        "return self.head(self.encode(self.prepare(x)))",
    ),
    "a write of a parameter": (
        "h = self.stem(x)\nwith torch.no_grad():\n    h[:2] = self.token\nreturn self.head(h)",
        ["-with torch.no_grad():", "-h[:2] = self.token", "+h[:2] = self.token"],
        "h = self.stem(x)\nh[:2] = self.token\nreturn self.head(h)",
    ),
    "a write into what backward may need": (
        "h = getattr(self, \"stem\")(x)\nwith torch.no_grad():\n    h[:2] = self.token\nreturn self.head(h)",
        ["-with torch.no_grad():", "-h[:2] = self.token", "+h = h.clone()", "+h[:2] = self.token"],
        "h = getattr(self, \"stem\")(x)\nh = h.clone()\nh[:2] = self.token\nreturn self.head(h)",
    ),
    "a layer in a loop": (
        "with torch.no_grad():\n    x = self.prepare(x)\n    for layer in (self.stem, self.second):\n        x = layer(x)\nreturn self.head(x)",
        ["-for layer in (self.stem, self.second):", "-x = layer(x)", "+for layer in (self.stem, self.second):", "+x = layer(x)"],
        "return self.head(self.second(self.stem(self.prepare(x))))",
    ),
}  # fmt: skip
RIGHT = {
    "nothing else in the block": ("with torch.no_grad():\n    x = self.stem(x)\nreturn self.head(x)", ""),
    "evaluated": (BLOCK, "net.stem.eval()"),
    "frozen": (BLOCK, "net.stem.requires_grad_(False)"),
    "loaded": (BLOCK, "net.stem.load_state_dict(nn.Linear(3, 4).state_dict())"),
    "a copy that is kept by hand": (BLOCK.replace("x = self.stem", "self.stem.weight.mul_(0.99)\n    x = self.stem"), ""),
    "a teacher by its name": (
        "with torch.no_grad():\n    x = self.prepare(x)\n    target = self.stem(x)\nreturn self.head(target)",
        "",
    ),
    "a metric": ("h = self.second(self.stem(x))\nwith torch.no_grad():\n    y = self.prepare(x)\n    print(self.stem(y).mean(), end='')\nreturn self.head(h)", ""),
    "trained outside of the block too": (BLOCK.replace("return", "x = x + self.stem(self.scale)\nreturn"), ""),
    "a write of data": ("h = self.stem(x)\nwith torch.no_grad():\n    h[:2] = self.scale.sum()\nreturn self.head(h)", ""),
    "an entry of a dictionary": ("kept = {}\nwith torch.no_grad():\n    kept[0] = self.stem(x)\nreturn self.head(kept[0])", ""),
    "kept state": (
        "with torch.no_grad():\n    x = self.prepare(x)\n    self.last = self.stem(x)\nreturn self.head(self.last)",
        "",
    ),
}  # fmt: skip


def program(body: str, extra: str = "") -> str:
    return TOP + "".join(f"        {line}\n" for line in body.split("\n")) + END.replace("{extra}", extra)


def mended(folder: pathlib.Path, text: str) -> str:
    """What the edit makes of a program that has been traced; the program as it was where there is none."""
    import gradfix

    with gradfix.trace() as seen:
        run(folder, "train", text)
    context = Context(program=write(folder, {"train.py": text}), incident=Incident(traced=seen.lines))
    found = [one for one in find_codemod("learn_behind_block")(context) if one.edits]
    return splice(text, found[0].edits) or "" if found else text


@pytest.mark.parametrize(("body", "extra"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, extra: str, tmp_path: pathlib.Path) -> None:
    """A block that freezes, by itself or by what the program says elsewhere, and one whose values reach no loss."""
    pytest.importorskip("torch")
    text = program(body, extra)
    assert mended(tmp_path, text) == text


@pytest.mark.parametrize(("body", "changes", "right"), WRONG.values(), ids=WRONG)
def test_the_layers_learn(body: str, changes: list[str], right: str, tmp_path: pathlib.Path) -> None:
    """The gradients after the edit are those of a program that never had the layers in the block."""
    torch = pytest.importorskip("torch")
    text = program(body)
    after = mended(tmp_path, text)
    assert [line[:1] + line[1:].lstrip() for line in diff_lines(text, after)] == changes
    assert all(map(_is_same(torch), run(tmp_path, "fixed", after), run(tmp_path, "right", program(right))))


def _is_same(torch):
    return lambda one, other: (one is None) == (other is None) and (one is None or torch.equal(one, other))
