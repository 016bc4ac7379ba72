"""An optimizer that was seen to step past Accelerate is prepared before its loop; one that is handed in stays."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import LogLine
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

SEEN = "seen in the live program: train.py:{} steps an optimizer that Accelerate has not prepared: it steps after each of the 4 batches of an update"
LOOP = """for epoch in range(2):
    for batch in loader:
        with accelerator.accumulate(net):
            accelerator.backward(net(batch).mean())
            OPT.step()
            OPT.zero_grad()
"""


def inside(head: str, loop: str) -> str:
    return head + "".join(f"    {line}\n" for line in loop.splitlines())


ENGINE = """class Engine:
    def __init__(self):
        self.accelerator = Accelerator(gradient_accumulation_steps=4)
        self.opt = None
    def setup(self, net):
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.net = self.accelerator.prepare(net)
        self.opt = opt
        self.schedule = StepLR(opt, 1)
    def step(self, batch):
        with self.accelerator.accumulate(self.net):
            self.accelerator.backward(self.net(batch).mean())
            self.opt.step()
            self.opt.zero_grad()
"""
PREPARED = {
    "what a class keeps": (ENGINE, ["-        self.opt = opt", "+        self.opt = self.accelerator.prepare(opt)"]),
    "a script": ("opt = torch.optim.SGD(net.parameters(), lr=0.1)\n" + LOOP.replace("OPT", "opt"), ["+opt = accelerator.prepare(opt)"]),
    "a function": (
        inside("def main():\n    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n", LOOP.replace("OPT", "opt")),
        ["+    opt = accelerator.prepare(opt)"],
    ),
    "an attribute": (
        inside("def fit(self):\n", LOOP.replace("OPT", "self.opt").replace("accelerator", "self.accelerator")),
        ["+    self.opt = self.accelerator.prepare(self.opt)"],
    ),
}  # fmt: skip
NAMED = {
    "an argument": inside("def fit(opt):\n", LOOP.replace("OPT", "opt")),
    "what is made at two places": ENGINE + "    def again(self):\n        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.2)\n",
    "an accelerator that comes later": ENGINE.replace("        self.schedule", "        self.accelerator = Accelerator()\n        self.schedule").replace(
        "        self.accelerator = Accelerator(gradient_accumulation_steps=4)\n", "", 1
    ),
}  # fmt: skip
LEFT = {
    "no block of Accelerate's": "opt = make()\n"
    + LOOP.replace("OPT", "opt").replace("with accelerator.accumulate(net)", "if True"),
}


def proposed(source: str, folder: pathlib.Path):
    program = write(folder, {"train.py": source})
    incident = replace(failed(), log=(LogLine(text=SEEN.format(line_of(source, ".step()"))),))
    return best("prepare_optimizer", program, incident=incident)


@pytest.mark.parametrize(("source", "lines"), PREPARED.values(), ids=PREPARED)
def test_prepared(source: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    proposal = proposed(source, tmp_path)
    assert proposal is not None
    assert diff_lines(source, splice(source, proposal.edits)) == lines


@pytest.mark.parametrize("source", NAMED.values(), ids=NAMED)
def test_the_line_alone(source: str, tmp_path: pathlib.Path) -> None:
    """Where it would be prepared at each call, or no place is known, the step is named."""
    proposal = proposed(source, tmp_path)
    assert proposal is not None
    assert proposal.edits == ()
    assert proposal.culprit.line == line_of(source, ".step()")


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    assert proposed(source, tmp_path) is None
