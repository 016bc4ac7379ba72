"""A loss of a second network takes what a first one has made as data, where nothing of its own lies before that."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = """import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
opt_t = torch.optim.SGD(teacher.parameters(), 0.1)
opt_s = torch.optim.SGD(student.parameters(), 0.1)
x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
"""
STEP = """scores = teacher(GIVEN)
first = F.cross_entropy(scores, y)
opt_t.zero_grad()
first.backward()
opt_t.step()
loss = F.kl_div(F.log_softmax(student(x), -1), F.softmax(WANTED, -1), reduction="batchmean") + F.cross_entropy(student(x), y)
opt_s.zero_grad()
loss.backward()
opt_s.step()
"""


def program(wanted: str = "scores", given: str = "x") -> str:
    return HEAD + STEP.replace("WANTED", wanted).replace("GIVEN", given)


RIGHT = {
    "detached": program("scores.detach()"),
    "computed anew": program("teacher(x)"),
    "the first network reads the second": program(given="student(x)"),
    "one optimizer": program().replace("opt_s = torch.optim.SGD(student", "opt_s = torch.optim.SGD(teacher"),
}


@pytest.mark.torch
def test_the_scores_are_data(tmp_path: pathlib.Path) -> None:
    """The gradients are those of scores that were computed before anything was stepped."""
    torch = pytest.importorskip("torch")
    source = program()
    with pytest.raises(RuntimeError, match="second time"):
        exec(source, {})
    after = rewritten(tmp_path, "detach_for_next_network", source, "loss.backward")
    assert diff_lines(source, after)[1:] == [
        '+loss = F.kl_div(F.log_softmax(student(x), -1), F.softmax(scores.detach(), -1), reduction="batchmean") + F.cross_entropy(student(x), y)'
    ]
    done, wanted = {}, {}
    exec(after, done)
    exec(
        source.replace(
            "scores = teacher(x)", "with torch.no_grad(): scores_ = teacher(x)\nscores = teacher(x)"
        ).replace("F.softmax(scores,", "F.softmax(scores_,"),
        wanted,
    )
    assert torch.equal(done["student"].weight.grad, wanted["student"].weight.grad)
    assert rewritten(tmp_path, "detach_for_next_network", after, "loss.backward") == after


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "detach_for_next_network", source, "loss.backward") == source
