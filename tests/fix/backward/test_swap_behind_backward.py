"""What puts other weights into a model for an evaluation, and the trained ones back, stands behind the backward."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import WRITE, TracedLine
from tests.fix.rewriting import failed, line_of, write

HEAD = """import contextlib
import torch
class Average:
    def store(self):
        self.kept = [p.detach().clone() for p in self.net.parameters()]
    def put(self):
        with torch.no_grad():
            for p, s in zip(self.net.parameters(), self.shadow):
                p.copy_(s)  # in
    def restore(self):
        with torch.no_grad():
            for p, b in zip(self.net.parameters(), self.kept):
                p.copy_(b)
    @contextlib.contextmanager
    def applied(self):
        self.store()
        self.put()
        yield self.net
        self.restore()
class Swapped:
    def __init__(self, average):
        self.average = average
    def __enter__(self):
        self.average.put()
    def __exit__(self, *error):
        self.average.restore()
def score(average, x):
    with average.applied() as net:
        return net(x).mean().item()
def fit(net, opt, ema, loader):
    for x, y in loader:
        opt.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
"""
BACKWARD = "        loss.backward()\n"
STEP = "        opt.step()\n        print(loss.item(), val)\nfit(torch.nn.Linear(2, 1), torch.optim.SGD([], 1), Average(), [])\n"
WRONG = {
    "a context": "        with ema.applied() as smooth, torch.no_grad():\n            val = smooth(x).mean().item()\n",
    "a context of a class": "        with Swapped(ema):\n            val = net(x).mean().item()\n",
    "a value": "        val = score(ema, x)\n",
    "calls by hand": "        ema.store()\n        ema.put()\n        val = net(x).mean().item()\n        ema.restore()\n",
}
RIGHT = {
    "a value that the backward reads": "        val = score(ema, x)\n        loss = loss * val\n",
    "weights that stay": "        ema.put()\n        val = 0\n",
    "an evaluation that returns": "        with ema.applied() as smooth:\n            val = smooth(x)\n            return val\n",
    "another block": "        with torch.no_grad():\n            val = net(x).mean().item()\n",
}


def mended(folder: pathlib.Path, source: str) -> str:
    program = write(folder, {"train.py": source})
    traced = TracedLine(kind=WRITE, operation="copy_", file="train.py", line=line_of(HEAD, "# in"))
    incident = Incident(exceptions=failed().exceptions, traced=(traced,))
    found = list(find_codemod("swap_behind_backward")(Context(program=program, incident=incident)))
    assert len(found) <= 1
    return splice(source, found[0].edits) or "" if found else source


@pytest.mark.parametrize("lines", WRONG.values(), ids=WRONG)
def test_it_moves_as_a_whole(lines: str, tmp_path: pathlib.Path) -> None:
    """Right behind the backward: what is evaluated and what is stepped is the same."""
    after = mended(tmp_path, HEAD + lines + BACKWARD + STEP)
    assert after == HEAD + BACKWARD + lines + STEP
    assert mended(tmp_path, after) == after


@pytest.mark.parametrize("lines", RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(lines: str, tmp_path: pathlib.Path) -> None:
    """What something before the backward needs, what leaves, and what puts nothing back."""
    source = HEAD + lines + BACKWARD + STEP
    assert mended(tmp_path, source) == source


def test_half_of_a_swap_is_not_moved_alone(tmp_path: pathlib.Path) -> None:
    """The edit that moves one write behind the step leaves those alone that are put back."""
    source = HEAD + WRONG["calls by hand"] + BACKWARD + STEP
    program = write(tmp_path, {"train.py": source})
    traced = TracedLine(kind=WRITE, operation="copy_", file="train.py", line=line_of(HEAD, "# in"))
    incident = Incident(exceptions=failed().exceptions, traced=(traced,))
    assert not list(find_codemod("move_behind_step")(Context(program=program, incident=incident)))
