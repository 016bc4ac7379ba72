"""A traced write through `.data` becomes one that autograd sees."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import HIDDEN_WRITE, WRITE, TracedLine
from tests.fix.rewriting import diff_lines, line_of, write

HEAD = "import torch\nimport torch.nn.functional as F\nclass Net(torch.nn.Module):\n"
# The body of a method, and the line that was traced.
RIGHT = {
    "a parameter": ("self.weight = torch.nn.Parameter(x)\nself.weight.data.clamp_(-1, 1)\nreturn x", "clamp_"),
    "a parameter that a loop hands out": ("for p in self.parameters():\n    p.data.mul_(0.9)\nreturn x", "mul_"),
    "a module's weight": ("self.lin.weight.data.clamp_(-1, 1)\nreturn self.lin(x)", "clamp_"),
    "the caller's tensor": ("x.data.mul_(2)\nreturn None", "mul_"),
    "rounding, straight through": ("h = torch.tanh(x)\nh.data.round_()\nreturn h", "round_"),
    "a copy, straight through": ("h = torch.tanh(x)\nh.data.copy_(self.code(h))\nreturn h", "copy_"),
    "under no_grad": ("h = torch.tanh(x)\nwith torch.no_grad():\n    h.data.mul_(2)\nreturn h", "mul_"),
    "the value of the write is used": ("h = torch.tanh(x)\nreturn h.data.mul_(2)", "mul_"),
    "a write that is seen": ("h = torch.tanh(x)\nh.mul_(2)\nreturn h", "mul_"),
}
WRONG = {
    "a method": (
        "w = torch.softmax(x, -1)\nw.data.masked_fill_(w < 0.1, 0.0)\nreturn w @ x",
        "masked_fill_",
        ["-w.data.masked_fill_(w < 0.1, 0.0)", "+w = w.masked_fill(w < 0.1, 0.0)"],
    ),
    "an augmented assignment": (
        "h = torch.tanh(x)\nh.data *= self.scale + 1\nreturn h",
        "h.data *=",
        ["-h.data *= self.scale + 1", "+h = h * (self.scale + 1)"],
    ),
    "an attribute": (
        "self.h = torch.tanh(x)\nself.h.data += 0.1\nreturn self.h",
        "self.h.data",
        ["-self.h.data += 0.1", "+self.h = self.h + 0.1"],
    ),
    "a part": (
        "p = torch.softmax(x, -1)\np.data[:, 0] = 0.0\nreturn p",
        "p.data[",
        ["-p.data[:, 0] = 0.0", "+p = p.clone()", "+p[:, 0] = 0.0"],
    ),
    "a part through a method": (
        "p = torch.softmax(x, -1)\np.data[:, 0].mul_(0.5)\nreturn p",
        "p.data[",
        ["-p.data[:, 0].mul_(0.5)", "+p = p.clone()", "+p[:, 0].mul_(0.5)"],
    ),
    "a function": (
        "p = torch.tanh(x)\nF.relu_(p.data)\nreturn p",
        "F.relu_",
        ["-F.relu_(p.data)", "+p = F.relu(p)"],
    ),
    "two of one tensor, of which one was traced": (
        "p = torch.tanh(x)\np.data.mul_(2)\np.data[:, 0] = 0.0\nreturn p",
        "p.data.mul_",
        ["-p.data.mul_(2)", "-p.data[:, 0] = 0.0", "+p = p.mul(2)", "+p = p.clone()", "+p[:, 0] = 0.0"],
    ),
}


def mended(folder: pathlib.Path, body: str, at: str, kind: str = HIDDEN_WRITE) -> tuple[str, str]:
    """The program and what the edit makes of it; it is unsafe always."""
    source = HEAD + "    def forward(self, x):\n" + "".join(f"        {line}\n" for line in body.split("\n"))
    program = write(folder, {"train.py": source})
    (path,) = program.files
    traced = TracedLine(kind=kind, operation="mul_", file=path, line=line_of(source, at))
    found = list(find_codemod("write_seen_by_autograd")(Context(program=program, incident=Incident(traced=(traced,)))))
    assert {one.applicability for one in found} <= {"unsafe"}
    return source, splice(source, found[0].edits) or "" if found else source


@pytest.mark.parametrize(("body", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, at: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed for weights, for what belongs to somebody else, or where `.data` passes a gradient on."""
    source, after = mended(tmp_path, body, at)
    assert after == source


def test_what_was_not_traced_stays(tmp_path: pathlib.Path) -> None:
    """The source alone does not say that a backward needs what is written."""
    source, after = mended(tmp_path, "h = torch.tanh(x)\nh.data.mul_(2)\nreturn h", "mul_", WRITE)
    assert after == source


@pytest.mark.parametrize(("body", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(body: str, at: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The tensor that a backward keeps stays as it was."""
    source, after = mended(tmp_path, body, at)
    assert [line[:1] + line[1:].lstrip() for line in diff_lines(source, after)] == changes
