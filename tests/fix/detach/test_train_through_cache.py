"""A detach on the way into a cache goes where each step empties the cache and the tracer saw parameters starve."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Proposal
from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import CUT, STARVING_CUT, TracedLine
from tests.fix.rewriting import best, diff_lines, line_of, write

HEAD = """import torch
from torch import nn
tower, query = nn.Linear(4, 3), nn.Linear(4, 3)
opt = torch.optim.SGD([*tower.parameters(), *query.parameters()], 0.1)
x = torch.randn(5, 4)


class Rows:
    def __init__(self, net):
        self.net, self.rows = net, {}

    def start(self):
        self.rows = {}

    def fill(self, x):
        for i, row in enumerate(self.net(x)):
            self.rows[i] = row.detach()

    def __call__(self, x):
        self.fill(x)
        return torch.stack([self.rows[i] for i in range(len(x))])


"""
STEP = """    loss = (query(x) * items(x)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
KEPT = ["-            self.rows[i] = row.detach()", "+            self.rows[i] = row"]
WRONG = {
    "a method empties it": (HEAD + "items = Rows(tower)\nfor _ in range(3):\n    items.start()\n" + STEP, KEPT),
    "its own clear": (
        HEAD.replace("self.rows = {}\n\n    def fill", "self.rows.clear()\n\n    def fill")
        + "items = Rows(tower)\nfor epoch in range(2):\n  for _ in range(3):\n    items.start()\n"
        + STEP,
        KEPT,
    ),
    "the holder is made anew": (HEAD + "for _ in range(3):\n    items = Rows(tower)\n" + STEP, KEPT),
    "a dict of the loop": (
        HEAD
        + """for _ in range(3):
    rows = {}
    for i, row in enumerate(tower(x)):
        rows[i] = row.detach().clone()
    loss = (query(x) * torch.stack(list(rows.values()))).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        ["-        rows[i] = row.detach().clone()", "+        rows[i] = row.clone()"],
    ),
    "a list that is cleared": (
        HEAD
        + """rows = []
for _ in range(3):
    rows.clear()
    for row in tower(x):
        rows.append(row.data)
    loss = (query(x) * torch.stack(rows)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        ["-        rows.append(row.data)", "+        rows.append(row)"],
    ),
}
RIGHT = {
    "a cache that outlives the step": HEAD + "items = Rows(tower)\nfor _ in range(3):\n" + STEP,
    "emptied once an epoch": HEAD
    + "items = Rows(tower)\nfor epoch in range(2):\n  items.start()\n  for _ in range(3):\n"
    + STEP.replace("    ", "      "),
    "emptied now and then": HEAD
    + "items = Rows(tower)\nfor step in range(3):\n    if step % 2:\n        items.start()\n"
    + STEP,
    "a target of its own": HEAD
    + """for _ in range(3):
    target = tower(x)
    target = target.detach()
    loss = (query(x) * target).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}


def proposed(folder: pathlib.Path, source: str, kind: str = STARVING_CUT) -> tuple[Proposal | None, str]:
    """What is proposed for a cut that was traced at the line which detaches, and the program with it."""
    program = write(folder, {"train.py": source})
    cuts = ("target.detach()", "row.detach().clone()", "row.data", "self.rows[i] = row.detach()")
    number = line_of(source, next(one for one in cuts if one in source))
    line = TracedLine(kind=kind, operation="detach", file="train.py", line=number)
    found = best("train_through_cache", program, incident=Incident(traced=(line,)))
    after = splice(source, found.edits) if found is not None else source
    assert after is not None
    return found, after


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_the_graph_of_a_step_is_kept(tmp_path, source: str, wanted: list[str]) -> None:
    """The detach goes, and only with leave: what fills the cache may be meant to stay as it is."""
    found, after = proposed(tmp_path, source)
    assert diff_lines(source, after) == wanted
    assert found is not None
    assert found.applicability == "unsafe"


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_cuts_stay(tmp_path, source: str) -> None:
    """A cache that outlives its step needs the detach, and a target that is no cache may be meant."""
    assert proposed(tmp_path, source)[0] is None


def test_only_what_was_traced(tmp_path) -> None:
    """Without parameters that starve there is no fault."""
    source, _ = WRONG["a method empties it"]
    assert proposed(tmp_path, source, CUT)[0] is None
