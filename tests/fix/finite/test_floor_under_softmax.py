"""No floor goes under a softmax that a trace saw round to 0: it would leave no gradient where the loss is largest."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import NOT_FINITE, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

FOCAL = """import torch
from torch import nn

net = nn.Linear(3, 4)
x, y = torch.randn(8, 3), torch.zeros(8, dtype=torch.long)
prob = torch.softmax(64 * net(x), dim=-1)
pt = prob.gather(1, y[:, None]).squeeze(1)
loss = ((1 - pt) ** 2 * -torch.log(pt)).mean()
loss.backward()
"""


def context_of(folder: pathlib.Path, source: str) -> dict[str, object]:
    line = TracedLine(
        kind=NOT_FINITE, operation="log", file="train.py", line=line_of(source, "torch.log("), node="LogBackward0"
    )
    return {"program": write(folder, {"train.py": source}), "incident": replace(failed(), traced=(line,))}


def test_the_logarithm_comes_from_the_scores(tmp_path: pathlib.Path) -> None:
    proposal = best("log_of_scores", **context_of(tmp_path, FOCAL))  # type: ignore[arg-type]
    assert proposal is not None
    after = splice(FOCAL, proposal.edits) or ""
    assert changed_lines(FOCAL, after) == [
        "prob_scores = 64 * net(x)",
        "prob = torch.softmax(prob_scores, dim=-1)",
        "loss = ((1 - pt) ** 2 * -torch.log_softmax(prob_scores, dim=-1).gather(1, y[:, None]).squeeze(1)).mean()",
    ]


@pytest.mark.parametrize(
    ("source", "is_floored"),
    [(FOCAL, False), (FOCAL.replace("torch.softmax(64 * net(x), dim=-1)", "net(x).square()"), True)],
    ids=["a softmax", "what is no probability"],
)
def test_where_a_floor_goes(source: str, is_floored: bool, tmp_path: pathlib.Path) -> None:
    given = context_of(tmp_path, source)
    proposal = best("guard_argument", options={"kinds": ["log"]}, **given)  # type: ignore[arg-type]
    assert (proposal is not None and bool(proposal.edits)) is is_floored


BY_HAND = """import torch
from torch import nn

net = nn.Linear(3, 4)
weight = torch.exp(-net(torch.randn(8, 3)).square() / temperature)
share = weight / weight.sum(-1, keepdim=True)
share.square().sum().backward()
"""


def test_a_softmax_by_hand_gets_no_floor(tmp_path: pathlib.Path) -> None:
    """Where all exponentials round to 0 a floor makes nothing of what a softmax makes one; scores with a name are read by it."""
    source = BY_HAND.replace("weight =", "scores = -net(torch.randn(8, 3)).square()\nweight =").replace(
        "-net(torch.randn(8, 3)).square() / temperature)", "scores)"
    )
    line = TracedLine(
        kind=NOT_FINITE, operation="div", file="train.py", line=line_of(source, "share ="), node="DivBackward0"
    )
    given = {"program": write(tmp_path, {"train.py": source}), "incident": replace(failed(), traced=(line,))}
    assert best("guard_argument", options={"kinds": ["quotient"]}, **given) is None  # type: ignore[arg-type]
    proposal = best("stable_form", **given)  # type: ignore[arg-type]
    assert proposal is not None
    after = splice(source, proposal.edits) or ""
    assert changed_lines(source, after) == ["share = torch.softmax(scores, dim=-1)"]
