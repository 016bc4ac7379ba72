"""A differentiable form stands for a decision by argmax."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.trace import DEAD_TERM, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(2, 4), torch.tensor([0, 1])
"""
RIGHT = {
    "an accuracy for the log": (
        HEAD
        + """out = net(x)
hits = (out.argmax(1) == y).float().mean()
loss = F.cross_entropy(out, y)
loss.backward()
""",
        "loss.backward()",
    ),
    "labels by argmax": (
        HEAD
        + """wanted = x.argmax(1) % 3
loss = F.cross_entropy(net(x), wanted)
loss.backward()
""",
        "loss.backward()",
    ),
    "an index of something else": (
        HEAD
        + """best = net(x).argmax(1)
loss = net(x)[torch.arange(2), best].sum()
loss.backward()
""",
        "loss.backward()",
    ),
}
IMAGE = """import torch
from torch import nn
from torch.nn import functional as F


def coded(labels, classes):
    \"\"\"Classes second.\"\"\"
    return F.one_hot(labels, classes).permute(0, 3, 1, 2).float()


net = nn.Conv2d(3, 5, 1)
x, y = torch.randn(2, 3, 4, 4), torch.rand(2, 5, 4, 4)
out = net(x)
"""
RIGHT |= {
    "a code that lies otherwise": (
        IMAGE.replace("0, 3, 1, 2", "0, 3, 2, 1") + "loss = (coded(out.argmax(1), 5) * y).sum()\nloss.backward()\n",
        "loss.backward()",
    ),
    "a function that does more": (
        IMAGE.replace("    return", "    labels = labels.clamp(min=1)\n    return")
        + "loss = coded(out.argmax(1), 5).mean()\nloss.backward()\n",
        "loss.backward()",
    ),
    "classes last, scores second": (
        IMAGE
        + "code = F.one_hot(out.argmax(-1), 4).permute(0, 3, 1, 2)\nloss = code.float().mean()\nloss.backward()\n",
        "loss.backward()",
    ),
}
WRONG = {
    "one-hot decisions of pixels": (
        IMAGE
        + "code = F.one_hot(out.argmax(dim=1), 5).movedim(-1, 1).float()\nloss = (code * y).sum()\nloss.backward()\n",
        "loss.backward()",
        ["code = torch.softmax(out, dim=1)"],
    ),
    "by a function of the program": (
        IMAGE + "loss = 1 - (coded(out.argmax(dim=1), 5) * y).sum()\nloss.backward()\n",
        "loss.backward()",
        ["loss = 1 - (torch.softmax(out, dim=1) * y).sum()"],
    ),
    "an accuracy": (
        HEAD
        + """out = net(x)
hits = (out.argmax(1) == y).float().mean()
loss = 1 - hits
loss.backward()
""",
        "loss.backward()",
        ["loss = F.cross_entropy(out, y)"],
    ),
    "torch.argmax": (
        HEAD
        + """out = net(x)
loss = -(torch.argmax(out, dim=1) == y).float().mean()
loss.backward()
""",
        "loss.backward()",
        ["loss = F.cross_entropy(out, y)"],
    ),
    "classes in a criterion": (
        HEAD
        + """out = net(x)
loss = F.mse_loss(out.argmax(1).float(), y.float())
loss.backward()
""",
        "loss.backward()",
        ["loss = F.cross_entropy(out, y)"],
    ),
    "one-hot decisions": (
        HEAD
        + """choice = F.one_hot(net(x).argmax(-1), 3).float()
loss = (choice * torch.randn(2, 3)).sum()
loss.backward()
""",
        "loss.backward()",
        ["choice = torch.softmax(net(x), dim=-1)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Decisions beside the way of the graph are left alone."""
    assert rewritten(tmp_path, "surrogate_of_argmax", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The loss is that of the scores; a second time nothing is left to do."""
    after = rewritten(tmp_path, "surrogate_of_argmax", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "surrogate_of_argmax", after, again) == after


def test_a_term_that_a_trace_saw_decide(tmp_path: pathlib.Path) -> None:
    """The helper that a loss shares with a report takes probabilities; where torch has no name there, by their own method."""
    source = """import torch.nn.functional as F


def coded(labels, classes):
    return F.one_hot(labels, classes).movedim(-1, 1).float()


def dice(logits, target):
    seg = coded(logits.argmax(1), 3)
    return (seg * target).sum()
"""
    path = tmp_path / "train.py"
    traced = TracedLine(kind=DEAD_TERM, operation="argmax", file=str(path), line=line_of(source, "argmax"))
    program = write(tmp_path, {"train.py": source})
    (found,) = find_codemod("surrogate_of_argmax")(
        Context(program=program, incident=replace(failed(), traced=(traced,)))
    )
    assert changed_lines(source, splice(source, found.edits) or "") == ["seg = logits.softmax(1)"]


def test_which_form_stands_for_a_decision_is_the_author_s(tmp_path: pathlib.Path) -> None:
    """Hits have one; of decisions in a loss of another kind the form is shown, and not applied."""
    kinds = {name: best("surrogate_of_argmax", write(tmp_path, {"train.py": WRONG[name][0]})) for name in WRONG}
    assert kinds["torch.argmax"].applicability == "unsafe"
    assert kinds["one-hot decisions"].applicability == "display"
    assert kinds["classes in a criterion"].applicability == "display"
