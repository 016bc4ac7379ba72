"""All writes of the views that one call returned become assignments together."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.model.incident import ExceptionRecord, Frame, Incident
from tests.fix.rewriting import best, diff_lines, failed, line_of, rewritten, write

HEAD = "import torch\nimport torch.nn.functional as F\nclass Cell(torch.nn.Module):\n"
# The body of a method and the line that raised.
RIGHT = {
    "the tensor that was cut is read afterwards": (
        "gates = self.lin(x)\ni, f = gates.chunk(2, -1)\ni += f\nreturn gates",
        "i += f",
    ),
    "it is read in the next round": (
        "acc = self.lin(x)\nfor t in range(3):\n    i, f = acc.split(4, -1)\n    i += f\n    acc = torch.cat([acc, i], -1)\nreturn acc",
        "i += f",
    ),
    "the line that raised writes nothing": (
        "i, f = self.lin(x).chunk(2, -1)\ni += 1\nreturn i.view(3) + f",
        "return i",
    ),
    "an element that a loop hands out": (
        "for gate in self.lin(x).chunk(2, -1):\n    gate.sigmoid_()\nreturn x",
        "gate.sigmoid_()",
    ),
    "a write in a form that has no other": (
        "i, f = self.lin(x).chunk(2, -1)\ni += f\nself.keep(f.zero_())\nreturn i * f",
        "i += f",
    ),
}
WRONG = {
    "the tensor that was cut is asked for its shape": (
        "h = self.lin(x)\ni, f = h.chunk(2, -1)\ni += x\nreturn i * f, h.new_zeros(len(h)) + torch.zeros_like(h).sum()",
        "i += x",
        ["-i += x", "+i = i + x"],
    ),
    "each view augmented": (
        "i, f = self.lin(x).chunk(2, -1)\ni += x\nf *= x + 1\nreturn i * f",
        "i += x",
        ["-i += x", "-f *= x + 1", "+i = i + x", "+f = f * (x + 1)"],
    ),
    "methods and functions": (
        "q, k, v = self.lin(x).split(4, dim=-1)\nq.mul_(self.scale)\nF.relu_(k)\ntorch.sigmoid_(v)\nreturn q + k + v",
        "q.mul_",
        ["-q.mul_(self.scale)", "-F.relu_(k)", "-torch.sigmoid_(v)", "+q = q.mul(self.scale)", "+k = F.relu(k)", "+v = torch.sigmoid(v)"],
    ),
    "a tuple of writes": (
        "i, f = self.lin(x).unbind(1)\ni, f = i.sigmoid_(), f.sigmoid_()\nreturn i * f",
        "i.sigmoid_()",
        ["-i, f = i.sigmoid_(), f.sigmoid_()", "+i, f = i.sigmoid(), f.sigmoid()"],
    ),
    "writes inside of the last expression": (
        "i, g = self.lin(x).chunk(2, -1)\nreturn i.sigmoid_() * g.tanh_()",
        "return i",
        ["-return i.sigmoid_() * g.tanh_()", "+return i.sigmoid() * g.tanh()"],
    ),
    "a part of one, the whole of another": (
        "mean, scale = self.lin(x).chunk(2, -1)\nscale.clamp_(-5, 2)\nmean[:, 0] = 0.0\nreturn mean * scale.exp()",
        "scale.clamp_",
        ["-scale.clamp_(-5, 2)", "+mean = mean.clone()", "+scale = scale.clamp(-5, 2)"],
    ),
    "a part through a method": (
        "a, b = self.lin(x)\na[:, 1:].mul_(2)\nreturn a + b",
        "a[:, 1:]",
        ["+a = a.clone()"],
    ),
    "noise in a view": (
        "a, b = self.lin(x).chunk(2, -1)\na.normal_()\nreturn a + b",
        "a.normal_",
        ["-a.normal_()", "+a = a.clone().normal_()"],
    ),
    "only the shape of the base is read": (
        "gates = self.lin(x)\ni, f = gates.chunk(2, -1)\ni += 1\nreturn i.view(gates.shape[0], -1) + f",
        "i += 1",
        ["-i += 1", "+i = i + 1"],
    ),
    "views of another unpacking stay": (
        "a, b = self.lin(x).chunk(2, -1)\nc, d = torch.zeros(2, 4)\nc += 1\na += c\nreturn a + b",
        "a += c",
        ["-a += c", "+a = a + c"],
    ),
    "a view that was reshaped since": (
        "q, k = self.lin(x).chunk(2, -1)\nq = q.view(2, 2, 4)\nq *= 0.5\nreturn q + k",
        "q *= 0.5",
        ["-q *= 0.5", "+q = q * 0.5"],
    ),
}  # fmt: skip


def program(body: str) -> str:
    return HEAD + "    def forward(self, x):\n" + "".join(f"        {line}\n" for line in body.split("\n"))


@pytest.mark.parametrize(("body", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, at: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the write may be meant for the tensor that was cut, or cannot be written otherwise."""
    source = program(body)
    assert rewritten(tmp_path, "write_views_out_of_place", source, at) == source


@pytest.mark.parametrize(("body", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(body: str, at: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """One edit changes all lines that write a view; a second time nothing is left to do."""
    source = program(body)
    after = rewritten(tmp_path, "write_views_out_of_place", source, at)
    assert [line[:1] + line[1:].lstrip() for line in diff_lines(source, after)] == changes
    assert rewritten(tmp_path, "write_views_out_of_place", after, at if at in after else None) == after


def test_a_tensor_that_was_handed_in_makes_it_unsafe(tmp_path: pathlib.Path) -> None:
    """Whoever called may read the tensor that was cut."""
    source = program("i, f = x.chunk(2, -1)\ni += 1\nreturn i * f")
    incident = failed({"train.py": line_of(source, "i += 1")})
    found = best("write_views_out_of_place", write(tmp_path, {"train.py": source}), incident=incident)
    assert found is not None
    assert found.applicability == "unsafe"


def test_the_exception_of_a_worker_counts(tmp_path: pathlib.Path) -> None:
    """A launcher raises another exception behind that of its worker, at its own line."""
    source = program("i, f = self.lin(x).chunk(2, -1)\ni += 1\nreturn i * f") + "torch.multiprocessing.spawn(work)\n"
    lines = [line_of(source, "i += 1"), line_of(source, "spawn")]
    records = tuple(ExceptionRecord(type="E", frames=(Frame(file="train.py", line=one),)) for one in lines)
    context = Context(program=write(tmp_path, {"train.py": source}), incident=Incident(exceptions=records))
    assert [one.culprit.line for one in find_codemod("write_views_out_of_place")(context)] == [lines[0]]


VAE = """import torch
from torch import nn


class VAE(nn.Module):
    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        return self.draw(mu, logvar), mu, logvar

    def draw(self, mu, logvar):
        std = logvar.mul_(0.5).exp_()
        return mu + std * torch.randn_like(std)
"""


def test_what_is_computed_of_an_argument_for_another_name(tmp_path: pathlib.Path) -> None:
    """A caller's view in the place of a scratch: all that a chain writes of it is written out of place."""
    after = rewritten(tmp_path, "write_views_out_of_place", VAE, "std = logvar")
    assert after == VAE.replace("logvar.mul_(0.5).exp_()", "logvar.mul(0.5).exp()")


def test_what_is_written_for_the_caller_stays(tmp_path: pathlib.Path) -> None:
    """A statement of its own writes for whoever handed the tensor in."""
    source = VAE.replace("std = logvar.mul_(0.5).exp_()", "logvar.mul_(0.5)\n        std = logvar.exp()")
    assert rewritten(tmp_path, "write_views_out_of_place", source, "logvar.mul_(0.5)") == source
