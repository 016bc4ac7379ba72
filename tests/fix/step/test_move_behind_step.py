"""What leads to a traced write of weights before the backward comes after the step."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import WRITE, TracedLine
from tests.fix.rewriting import diff_lines, failed, line_of, write

HEAD = """import torch
class Trainer:
    def shrink(self):
        with torch.no_grad():
            for p in self.net.parameters():
                p.clamp_(-1, 1)
    def tidy(self):
        self.shrink()
    def count(self):
        self.seen += 1
    def fit(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
"""
STEP = "            loss.backward()\n            self.opt.step()\n            self.log(loss)\n"
FORWARD = "            loss = self.criterion(self.net(x), y)\n"
RIGHT = {
    "called before the forward": "            self.shrink()\n" + FORWARD + STEP,
    "called behind the step": FORWARD + STEP + "            self.shrink()\n",
    "another call between": FORWARD + "            self.count()\n" + STEP,
    "its value is used before the step": FORWARD
    + "            norm = self.shrink()\n            loss = loss * norm\n"
    + STEP,
    "its value is used in the next round": FORWARD
    + "            norm = self.shrink()\n"
    + STEP
    + "        print(norm)\n",
    "another optimizer steps between": FORWARD + "            self.other.step()\n            self.shrink()\n" + STEP,
    "no step": FORWARD + "            self.shrink()\n            loss.backward()\n",
}
# The lines that move, with what stands behind them.
WRONG = {
    "a method": ("            self.shrink()\n", STEP),
    "a method that calls it": ("            self.tidy()\n", STEP),
    "under a condition": ("            if self.is_small:\n                self.tidy()\n", STEP),
    "a step under a condition": (
        "            self.shrink()\n",
        "            loss.backward()\n            if self.is_last:\n                self.opt.step()\n",
    ),
}


def mended(folder: pathlib.Path, body: str) -> tuple[str, str]:
    """The program and what the edit makes of it; it is unsafe always."""
    program = write(folder, {"train.py": HEAD + body})
    traced = TracedLine(kind=WRITE, operation="clamp_", file="train.py", line=line_of(HEAD, "clamp_"))
    incident = Incident(exceptions=failed().exceptions, traced=(traced,))
    found = list(find_codemod("move_behind_step")(Context(program=program, incident=incident)))
    assert {one.applicability for one in found} <= {"unsafe"}
    return HEAD + body, splice(HEAD + body, found[0].edits) or "" if found else HEAD + body


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed for what stands elsewhere, leads to no write, or gives something on."""
    source, after = mended(tmp_path, body)
    assert after == source


@pytest.mark.parametrize(("lines", "step"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(lines: str, step: str, tmp_path: pathlib.Path) -> None:
    """The statement stands behind the step."""
    _, after = mended(tmp_path, FORWARD + lines + step)
    head, between, tail = step.partition("self.opt.step()\n")
    assert after == HEAD + FORWARD + head + between + lines + tail


def test_several_optimizers_are_through_first(tmp_path: pathlib.Path) -> None:
    """It stands behind the last of the steps that follow each other; one write is no exchange of weights, whatever it gives."""
    steps = "            loss.backward()\n            self.opt.step()\n            self.slow.step()\n"
    source = HEAD + FORWARD + "            done = self.shrink()\n" + steps + "            print(done)\n"
    program = write(tmp_path, {"train.py": source})
    traced = TracedLine(kind=WRITE, operation="clamp_", file="train.py", line=line_of(HEAD, "clamp_"))
    incident = Incident(exceptions=failed().exceptions, traced=(traced,))
    context = Context(program=program, incident=incident, fields={"gap": "1"})
    (found,) = find_codemod("move_behind_step")(context)
    after = splice(source, found.edits)
    assert after == HEAD + FORWARD + steps + "            done = self.shrink()\n            print(done)\n"
    assert not list(find_codemod("swap_behind_backward")(context))


def test_a_block_keeps_its_shape(tmp_path: pathlib.Path) -> None:
    """A block that writes the weights itself moves with its lines."""
    block = "            with torch.no_grad():\n                for q in self.net.parameters():\n                    q.mul_(0.9)\n"
    source = HEAD + FORWARD + block + STEP
    program = write(tmp_path, {"train.py": source})
    traced = TracedLine(kind=WRITE, operation="mul_", file="train.py", line=line_of(source, "q.mul_"))
    incident = Incident(exceptions=failed().exceptions, traced=(traced,))
    (found,) = find_codemod("move_behind_step")(Context(program=program, incident=incident))
    step = "            self.opt.step()\n"
    assert splice(source, found.edits) == (HEAD + FORWARD + STEP).replace(step, step + block)
