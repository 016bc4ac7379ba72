"""What edits may do to gradients that were right: one takes a cut away that was meant, another makes one that is in the way."""

from __future__ import annotations

import json
import pathlib

import pytest

from explainer.model.finding import Fix
from explainer.proof import OF_THE_PAST, RECONNECTS, cuts_graph, written_lines
from tests import forked
from tests.verification.programs import gradfix

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

TWO_HEADS = """import torch
from torch import nn

torch.manual_seed(0)
body, middle = nn.Linear(4, 4), nn.Linear(4, 4)
head, extra = nn.Linear(4, 1), nn.Linear(4, 1)
parts = nn.ModuleList([body, middle, head, extra])
optimizer = torch.optim.SGD(parts.parameters(), lr=0.1)
x = torch.randn(8, 4)
for step in range(6):
    hidden = {hidden}
    side = middle(hidden).detach()
    loss = (head({into}) + extra(side)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def repaired(folder: pathlib.Path, text: str) -> tuple[dict, str]:
    """What `run --fix` tells of a program, and the program that it leaves."""
    path = folder / "train.py"
    path.write_text(text)
    words = ("run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    return json.loads(gradfix(folder, *words).stdout), path.read_text()


def test_the_edits_are_those_of_the_rules(catalog) -> None:
    """A fix that is renamed would be held to nothing, in silence."""
    known = {rule.id for name in catalog.cause_ids for rule in catalog.cause(name).fixes}
    assert known >= RECONNECTS | OF_THE_PAST


@pytest.mark.parametrize(
    ("hidden", "into", "status", "verdict"),
    [
        pytest.param("body(x)", "hidden", "suspect", "red", id="shared", marks=pytest.mark.slow),
        pytest.param("x", "body(x)", "verified", "green", id="apart", marks=pytest.mark.slow),
    ],
)
def test_what_trained_keeps_its_gradients(
    tmp_path: pathlib.Path, hidden: str, into: str, status: str, verdict: str
) -> None:
    """Without the cut `middle` trains; where `body` then gets another gradient than before the cut was the author's."""
    text = TWO_HEADS.format(hidden=hidden, into=into)
    told, left = repaired(tmp_path, text)
    assert (told["status"], told["rounds"][0]["verdict"]) == (status, verdict)
    if verdict == "red":
        assert "trained before" in told["rounds"][0]["reasons"][0]
        assert left == text
    else:
        assert left == text.replace("middle(hidden).detach()", "middle(hidden)")


LATE = """import copy
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.weights = self.layer(x).softmax(-1)
        return (self.weights * x).sum(-1)


def spread(net):
    return getattr(net, "weights").log().mean()


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    loss = net(torch.randn(8, 4)).square().mean(){term}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 2:
        copy.deepcopy(net)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("term", "status"), [(" + spread(net)", "unfixed"), ("", "verified")], ids=["trained on", "looked at"]
)
def test_a_cut_before_a_late_failure_keeps_the_first_gradients(tmp_path: pathlib.Path, term: str, status: str) -> None:
    """The program trained until then as its author meant: what is detached for the copy's sake must not have been trained on."""
    told, left = repaired(tmp_path, LATE.replace("{term}", term))
    assert told["status"] == status
    if status == "unfixed":
        assert any("the edit changes what was right" in reason for one in told["rounds"] for reason in one["reasons"])
        assert left == LATE.replace("{term}", term)


STARVED = """import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
bank, head = nn.Linear(6, 4), nn.Linear(4, 3)
optimizer = torch.optim.SGD([*bank.parameters(), *head.parameters()], lr=0.1)


def measure(h):
    return torch.from_numpy({call}(h.numpy()))


for step in range(5):
    loss = head(measure(bank(torch.randn(8, 6)))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("call", "status"),
    [
        pytest.param("np.cbrt", "unfixed", id="NumPy alone", marks=pytest.mark.slow),
        pytest.param("np.square", "verified", id="torch as well", marks=pytest.mark.slow),
    ],
)
def test_a_cut_that_starves_what_comes_before_it_is_no_cure(tmp_path: pathlib.Path, call: str, status: str) -> None:
    """`.detach()` lets the program run, and half of it never trains: the traced run sees it; torch's own form is a cure."""
    told, left = repaired(tmp_path, STARVED.format(call=call))
    assert told["status"] == status
    if status == "unfixed":
        assert any("from ever getting a gradient" in reason for one in told["rounds"] for reason in one["reasons"])
        assert left == STARVED.format(call=call)
    else:
        assert "torch.square(h)" in left


def patched(line: str) -> Fix:
    """A fix whose patch adds a line."""
    patch = f"--- a/train.py\n+++ b/train.py\n@@ -3,1 +3,1 @@\n-x = 1\n+{line}\n"
    return Fix(id="one", title="one", applicability="safe", kind="edit", patch=patch)


@pytest.mark.parametrize(
    ("line", "cuts"),
    [
        ("    h = cell(x, h.detach())", True),
        ("self.keep = attention.detach()", True),
        ("with torch.no_grad():", True),
        ("self.state = tuple(part.detach() for part in self.state)", True),
        ('state = {**state, "h": state["h"].detach()}', True),
        ("state = state._replace(h=state.h.detach())", True),
        ("ema = 0.9 * ema + 0.1 * loss.detach()", False),
        ("self.scale[name] = 0.9 * self.scale[name] + 0.1 * value.detach()", False),
        ("self.scale[name] = 0.9 * self.scale[name].detach() + 0.1 * value", True),
        ("x = torch.relu(x)", False),
    ],
)
def test_which_edits_cut(line: str, cuts: bool) -> None:  # noqa: FBT001 - a value of the table
    """A statistic of steps that are over has no gradient to lose."""
    assert cuts_graph(patched(line)) is cuts
    assert written_lines(patched(line).patch or "") == {("train.py", 3)}


@pytest.mark.slow
def test_a_whole_term_of_the_loss(tmp_path: pathlib.Path) -> None:
    """A head whose term is cut off as a number never trains: a cut that is meant for what is before the head stands there."""
    text = TWO_HEADS.format(hidden="body(x)", into="hidden").replace(".detach()", "")
    text = text.replace(
        "loss = (head(hidden) + extra(side)).square().mean()",
        """term = head(hidden).square().mean()
    term = term.detach()
    loss = extra(side).square().mean() + term""",
    )
    told, left = repaired(tmp_path, text)
    assert (told["status"], told["rounds"][0]["verdict"]) == ("verified", "green")
    assert "detach" not in left
