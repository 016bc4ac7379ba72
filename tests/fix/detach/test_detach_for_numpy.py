"""Values for plots and logs leave the graph; a loss stays in torch."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import numpy as np
import torch
from torch import nn
net = nn.Linear(4, 3)
x = torch.randn(2, 4)
"""
RIGHT = {
    "an array that meets tensors again": (
        HEAD
        + """def draw(x):
    logvar = net(x)
    std = np.cbrt(logvar)
    noise = torch.randn(2, 3)
    return noise * std
draw(x)
""",
        "std =",
    ),
    "a detached output": (
        HEAD
        + """picture = net(x).detach().numpy()
""",
        "picture",
    ),
    "data": (
        HEAD
        + """picture = x.numpy()
""",
        "picture",
    ),
    "an output of an evaluation": (
        HEAD
        + """with torch.no_grad():
    out = net(x)
picture = out.numpy()
""",
        "picture",
    ),
    "losses as numbers": (
        HEAD
        + """losses = []
losses.append(net(x).sum().item())
mean = np.mean(losses)
""",
        "mean =",
    ),
    "a list of data": (
        HEAD
        + """rows = []
rows.append(x)
mean = np.mean(rows)
""",
        "mean =",
    ),
}
WRONG = {
    "an output": (
        HEAD
        + """picture = net(x).numpy()
""",
        "picture",
        ["picture = net(x).detach().numpy()"],
    ),
    "an output on another device": (
        HEAD
        + """out = net(x)
picture = out[0].cpu().numpy()
""",
        "picture",
        ["picture = out[0].detach().cpu().numpy()"],
    ),
    "an output for a function of NumPy": (
        HEAD
        + """out = net(x)
spread = np.std(out)
""",
        "spread",
        ["spread = np.std(out.detach().cpu().numpy())"],
    ),
    "collected losses": (
        HEAD
        + """losses = []
for _ in range(2):
    loss = net(x).sum()
    loss.backward()
    losses.append(loss)
mean = np.mean(losses)
""",
        "mean =",
        ["losses.append(loss.item())"],
    ),
    "collected pairs": (
        HEAD
        + """seen = []
for row in x:
    seen.append((net(row), row))
outs = np.array([one for one, _ in seen])
""",
        "outs =",
        ["seen.append((net(row).detach(), row))"],
    ),
    "collected outputs": (
        HEAD
        + """outs = []
for row in x:
    outs.append(net(row))
all_outs = np.array(outs)
""",
        "all_outs",
        ["outs.append(net(row).detach())"],
    ),
    "two parts of a list": (
        HEAD
        + """scores = net(x)
both = np.stack([scores, scores.softmax(1), x])
""",
        "np.stack",
        ["both = np.stack([scores.detach().cpu().numpy(), scores.softmax(1).detach().cpu().numpy(), x])"],
    ),
    "two arrays of one line": (
        HEAD
        + """scores = net(x)
pair = scores.exp().numpy(), scores.numpy()
""",
        "pair =",
        ["pair = scores.exp().detach().numpy(), scores.detach().numpy()"],
    ),
    "a part of a list": (
        HEAD
        + """seen = np.zeros((0, 3))
seen = np.concatenate([seen, net(x)])
""",
        "concatenate",
        ["seen = np.concatenate([seen, net(x).detach().cpu().numpy()])"],
    ),
    "what a metric is given": (
        HEAD
        + """class Seen:
    def update(self, scores):
        self.scores = np.concatenate([self.scores, scores])
seen = Seen()
seen.update(torch.sigmoid(net(x)))
with torch.no_grad():
    seen.update(torch.sigmoid(net(x)))
seen.update(np.zeros(3))
""",
        "concatenate",
        ["seen.update(torch.sigmoid(net(x)).detach())"],
    ),
    "a loss through NumPy": (
        HEAD
        + """loss = torch.tensor(np.mean(net(x).numpy()))
loss.backward()
""",
        "np.mean",
        ["loss = torch.mean(net(x))"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """What has no graph any more is left alone."""
    assert rewritten(tmp_path, "detach_for_numpy", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The values are taken where the array is asked for; a second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_for_numpy", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "detach_for_numpy", after, again) == after


METRIC = """import numpy as np
import torch
def auc(scores, targets):
    scores = np.asarray(scores)
    return float(scores.mean())
class Module:
    def summarise(self):
        logits = torch.cat([z for z, _ in self.history])
        value = auc(logits[:, 1], 0)
        USE
"""


@pytest.mark.parametrize(
    ("use", "is_cured"),
    [
        ("self.log('auc', value)", True),
        ("print(f'auc {value:.3f}')", True),
        ("return value", False),
        ("self.loss = value * 2", False),
    ],
)
def test_what_is_only_told(tmp_path, use: str, is_cured: bool) -> None:
    """The source does not say that the history has a graph; what is computed with stays as it is."""
    source = METRIC.replace("USE", use)
    after = rewritten(tmp_path, "detach_for_numpy", source, "np.asarray")
    assert changed_lines(source, after) == (["value = auc(logits[:, 1].detach(), 0)"] if is_cured else [])


RECORD = """import numpy as np
import torch


class Meter:
    def __init__(self):
        self.rows = []

    def update(self, **values):
        self.rows.append({k: np.asarray(v) for k, v in values.items()})
"""


def test_a_record_of_what_was_seen(tmp_path: pathlib.Path) -> None:
    """Where the tensor comes from the source does not say: the live frame has it; numbers beside it stay."""
    given = {"tensors": {"v": "[] float32"}}
    after = rewritten(tmp_path, "detach_for_numpy", RECORD, "np.asarray", **given)
    assert changed_lines(RECORD, after) == [
        "self.rows.append({k: np.asarray(v.detach() if torch.is_tensor(v) else v) for k, v in values.items()})"
    ]
    assert rewritten(tmp_path, "detach_for_numpy", RECORD, "np.asarray") == RECORD
