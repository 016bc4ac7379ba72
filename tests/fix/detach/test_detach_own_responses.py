"""What a network said before it goes on learning is a constant of the loss that holds it against that."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Proposal
from explainer.fix.splice import splice
from explainer.model.trace import ONCE, ONCE_MADE, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SOURCE = """import torch
import torch.nn.functional as F
from torch import nn


class Responses:
    def record(self, model, x, tasks):
        self.kept = [F.softmax(model(x, task), -1) for task in range(tasks)]  # recorded

    def loss(self, model, x, rows):
        total = 0.0
        for task, kept in enumerate(self.kept):
            now = F.log_softmax(model(x, task), -1)
            total = total - (kept[rows] * now).sum(-1).mean()  # taken
        return total


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 2)])

    def forward(self, x, task):
        return self.heads[task](x)


model, other, memory = Net(), Net(), Responses()
data = torch.ones(8, 3)
memory.record(model, data, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for rows in torch.arange(8).split(4):
    loss = memory.loss(model, data[rows], rows)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
WEIGHED = "total - (kept[rows] * now).sum(-1).mean()"
LIST = "self.kept = [F.softmax(model(x, task), -1).detach() for task in range(tasks)]  # recorded"


def proposed(source: str, folder: pathlib.Path) -> Proposal | None:
    program, path = write(folder, {"train.py": source}), str(folder / "train.py")
    traced = tuple(
        TracedLine(kind=kind, operation="softmax", file=path, line=line_of(source, mark), is_guess=kind == ONCE_MADE)
        for kind, mark in ((ONCE_MADE, "# recorded"), (ONCE, "# taken"))
    )
    return best("detach_own_responses", program, incident=replace(failed(), traced=traced))


FORMS = {
    "each of a list": (SOURCE, LIST),
    "a divergence": (SOURCE.replace(WEIGHED, "total + F.kl_div(now, kept[rows])"), LIST),
    "each of a dictionary": (
        SOURCE.replace("[F.softmax(model(x, task), -1) for task in range(tasks)]", "{t: F.softmax(model(x, t), -1) for t in range(tasks)}"),
        "self.kept = {t: F.softmax(model(x, t), -1).detach() for t in range(tasks)}  # recorded",
    ),
    "one": (
        SOURCE.replace("[F.softmax(model(x, task), -1) for task in range(tasks)]", "F.softmax(model(x, 0), -1)"),
        "self.kept = F.softmax(model(x, 0), -1).detach()  # recorded",
    ),
    "appended": (
        SOURCE.replace("self.kept = [F.softmax(model(x, task), -1) for task in range(tasks)]", "self.kept.append(F.softmax(model(x, 0), -1))"),
        "self.kept.append(F.softmax(model(x, 0), -1).detach())  # recorded",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "line"), FORMS.values(), ids=FORMS)
def test_responses_are_detached_where_they_are_recorded(tmp_path: pathlib.Path, source: str, line: str) -> None:
    """Each of them, not the list that holds them."""
    proposal = proposed(source, tmp_path)
    assert proposal is not None
    assert changed_lines(source, splice(source, proposal.edits)) == [line]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (WEIGHED, "total + F.mse_loss(now, kept[rows])"),
        ("memory.record(model, ", "memory.record(other, "),
        ("-1) for task in range(tasks)]", "-1).detach() for task in range(tasks)]"),
        ("now = F.log_softmax(model(x, task), -1)", "now = model(x, task)"),
    ],
    ids=["a distance may train both", "another network", "detached", "no log-probabilities"],
)
def test_others_stay(old: str, new: str, tmp_path: pathlib.Path) -> None:
    """What is not held against the same network's probabilities may be meant to be made anew."""
    source = SOURCE.replace(old, new)
    assert source != SOURCE
    assert proposed(source, tmp_path) is None
