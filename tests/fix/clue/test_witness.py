"""What the source says against a stepped weight: one backward, of a loss of its own round, and all steps behind it."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.fix.clue.witness import READERS
from explainer.fix.codemod import Context
from explainer.model.trace import WRITE, TracedLine
from tests.fix.rewriting import failed, line_of, write

HEAD = """import torch
from torch import nn
net, other = nn.Linear(3, 3), nn.Linear(3, 3)
opt, opt_other = torch.optim.SGD(net.parameters(), lr=0.1), torch.optim.SGD(other.parameters(), lr=0.1)
"""
LOOP = "for x in torch.randn(4, 2, 3):\n"
# A step may stand between the forward and the backward that failed.
SILENT = {
    "another loss before": LOOP + "    a, b = net(x).sum(), net(x).mean()\n    a.backward()\n    opt.step()\n    b.backward()\n",
    "a step before": LOOP + "    loss = net(x).sum()\n    opt.step()\n    loss.backward()\n",
    "a graph that is kept": LOOP + "    loss = net(x).sum()\n    loss.backward(retain_graph=True)\n    opt.step()\n",
    "losses made before the loop": (
        "losses = {'a': net(x).sum(), 'b': net(x).mean()}\nfor name in losses:\n    loss = losses[name] * 1.0\n    loss.backward()\n    opt.step()\n"
    ),
    "losses that the loop hands out": (
        "for loss in (net(x).sum(), net(x).mean()):\n    loss.backward()\n    opt.step()\n"
    ),
    "an output of the last round": (
        "last = None\n" + LOOP + "    out = net(x)\n    if last is None:\n        last = out\n        continue\n"
        "    loss = (last - x).sum()\n    last = out\n    loss.backward()\n    opt.step()\n"
    ),
    "a helper that is given the loss": (
        "def step(loss, opt):\n    loss.backward()\n    opt.step()\n"
        + LOOP + "    a, b = net(x).sum(), net(other(x)).sum()\n    step(a, opt)\n    step(b, opt_other)\n"
    ),
    "an average that moves weights": (
        "class N(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.q, self.k = nn.Linear(3, 3), nn.Linear(3, 3)\n"
        "    def forward(self, x):\n        out = self.k(self.q(x))\n        for a, b in zip(self.q.parameters(), self.k.parameters()):\n"
        "            b.data.mul_(0.9)\n        return out\nmodel = N()\n" + LOOP + "    loss = model(x).sum()\n    loss.backward()\n    opt.step()\n"
    ),
    "a call that may do anything": LOOP + "    loss = net(x).sum()\n    average.update(net)\n    loss.backward()\n    opt.step()\n",
}  # fmt: skip
SEEN = {
    "the plain loop": LOOP + "    loss = net(x).sum()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n",
    "a function of a step": (
        "def step(x, y):\n    loss = (net(x) - y).pow(2).sum()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n    return loss.item()\n"
        + LOOP + "    step(x, x)\n"
    ),
    "two optimizers behind one backward": LOOP + "    loss = other(net(x)).sum()\n    loss.backward()\n    opt.step()\n    opt_other.step()\n",
    "a method that is called a step": (
        "class N(nn.Module):\n    def step(self, x):\n        return net(x)\n    def forward(self, x):\n        return self.step(x)\n"
        "model = N()\n" + LOOP + "    loss = model(x).sum()\n    loss.backward()\n    opt.step()\n"
    ),
    "a module made before": (
        "class N(nn.Module):\n    def forward(self, x):\n        return net(x)\nmodel = N().to('cpu')\n"
        + LOOP + "    loss = model(x).sum()\n    loss.backward()\n    opt.step()\n"
    ),
}  # fmt: skip


def seen(body: str, folder: pathlib.Path) -> int | None:
    """The line that the reader names."""
    source = HEAD + body
    last = max(number for number, line in enumerate(source.splitlines(), 1) if ".backward(" in line)
    context = Context(program=write(folder, {"train.py": source}), incident=failed({"train.py": last}))
    place = READERS["step-behind-backward"](context)
    return place.line if place is not None else None


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT)
def test_nothing_is_said_where_a_step_may_stand_between(body: str, tmp_path: pathlib.Path) -> None:
    """A second backward, a kept graph, a loss from elsewhere and what may move weights all leave it open."""
    assert seen(body, tmp_path) is None


@pytest.mark.parametrize("body", SEEN.values(), ids=SEEN)
def test_all_steps_behind_the_only_backward_are_seen(body: str, tmp_path: pathlib.Path) -> None:
    """The line of the backward is named."""
    assert seen(body, tmp_path) == line_of(HEAD + body, ".backward(")


def test_every_reader_that_a_rule_names_is_there() -> None:
    """A rule with `reads = "source"` names a reader of this module."""
    catalog = load_catalog(None)
    causes = map(catalog.cause, catalog.cause_ids)
    named = {rule.conditions["reader"] for cause in causes for rule in cause.evidence if rule.reads == "source"}
    assert named == set(READERS)


NET = """import torch
from torch import nn
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.blocks = nn.Linear(3, 3), nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    def decay(self, h, x):
        h.mul_(0.5).add_(x)
        return torch.tanh(self.cell(h))
    def forward(self, x):
        h = x[0] * 2
"""
TRAIN = """        return h
model = N()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(4, 2, 3)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OVER_TIME = {
    "a count": ("        for t in range(len(x)):\n            y = self.cell(h)\n            h += y\n", "h += y"),
    "a sequence": ("        for x_t in x.unbind(0):\n            y = self.cell(h)\n            h.mul_(0.9).add_(y * x_t)\n", "h.mul_(0.9)"),
    "until it settles": ("        while h.norm() < 9:\n            y = self.cell(h)\n            h += y\n", "h += y"),
    "in a method": ("        for x_t in x:\n            y = self.decay(h, x_t)\n        h = h + y\n", "h.mul_(0.5)"),
}  # fmt: skip
OVER_LAYERS = {
    "modules": "        for block in self.blocks:\n            h += torch.tanh(block(h))\n",
    "modules by index": "        for i in range(2):\n            h += torch.tanh(self.blocks[i](h))\n",
    "modules that are handed in": "        for block in list(self.blocks):\n            h += torch.tanh(block(h))\n",
    "made anew in each round": "        for x_t in x:\n            h = torch.tanh(self.cell(h))\n            h += x_t\n",
    "no loop": "        y = self.cell(h)\n        h += y\n",
}


def seen_over_time(body: str, folder: pathlib.Path) -> int | None:
    """The line that the reader of writes over time names."""
    source = NET + body + TRAIN
    context = Context(
        program=write(folder, {"train.py": source}), incident=failed({"train.py": line_of(source, ".backward(")})
    )
    place = READERS["written-over-time"](context)
    return place.line if place is not None else None


@pytest.mark.parametrize(("body", "words"), OVER_TIME.values(), ids=OVER_TIME)
def test_a_state_that_is_written_over_time_is_seen(body: str, words: str, tmp_path: pathlib.Path) -> None:
    """Each round runs the same modules on what the round before wrote."""
    assert seen_over_time(body, tmp_path) == line_of(NET + body, words)


@pytest.mark.parametrize("body", OVER_LAYERS.values(), ids=OVER_LAYERS)
def test_a_residual_stream_is_no_state(body: str, tmp_path: pathlib.Path) -> None:
    """A loop over layers, or a tensor of each round's own, is written alike and is another cause."""
    assert seen_over_time(body, tmp_path) is None


CLIMBED = """import torch
class SAM:
    @torch.no_grad()
    def climb(self):
        for p in self.params:
            p.add_(p.grad)
sam = SAM()
loss.backward()
sam.climb()
(loss_of(net) + penalty).backward()
"""


@pytest.mark.parametrize(("called", "is_told"), [("sam.climb()", True), ("sam.average()", False)])
def test_what_takes_the_first_of_two_steps(called: str, is_told: bool, tmp_path: pathlib.Path) -> None:  # noqa: FBT001
    """By the name under which the program calls what a trace saw writing."""
    source = CLIMBED.replace("climb(self)", called[4:-1] + "self)").replace("sam.climb()", called)
    program = write(tmp_path, {"train.py": source})
    line = line_of(source, "p.add_")
    traced = TracedLine(kind=WRITE, operation="add_", file=str(tmp_path / "train.py"), line=line)
    found = READERS["moved-by-a-climb"](Context(program=program, incident=replace(failed(), traced=(traced,))))
    assert (found is not None and found.line == line) == is_told


CODED = """import torch.nn.functional as F

def mask(logits):
    return F.one_hot(logits.argmax(1), logits.size(1)).float()

loss = (mask(net(x)) * y).sum()
loss.backward()
"""


@pytest.mark.parametrize(
    ("source", "line"),
    [(CODED, "argmax"), (CODED.replace(").sum()", ").sum() + net(x).sum()"), ""), (CODED.replace("net(x)", "net(x).detach()"), "")],
    ids=["a decision", "a live term beside it", "a detach before it"],
)  # fmt: skip
def test_a_decision_is_all_that_ends_the_graph(source: str, line: str, tmp_path: pathlib.Path) -> None:
    """Sizes carry no graph; what is detached as well has another cause."""
    source = HEAD + source
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "loss.backward")})
    found = READERS["counts-on-the-way"](Context(program=program, incident=incident))
    assert (found.line if found is not None else 0) == (line_of(source, line) if line else 0)
