"""A value that is thrown away afterwards is computed of a safe input."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
net = nn.Linear(4, 4)
x, y = torch.randn(8, 4), torch.randn(8, 4)
out = net(x).relu()
"""

RIGHT = {
    "no selection at all": "loss = torch.log(out + 1).sum()",
    "a safe input already": "loss = torch.where(out > 0, torch.log(torch.where(out > 0, out, 1)), 0).sum()",
    "a clamped input": "loss = torch.where(out > 0, torch.log(out.clamp_min(1e-6)), 0).sum()",
    "indexed first": "loss = torch.log(out[out > 0]).sum()",
    "an operation without a bad place": "loss = torch.where(out > 0, out * 2, out).sum()",
    "data only": "loss = (out * torch.where(y > 0, torch.log(y), 0)).sum()",
    "a reduction between": "loss = torch.where(y[:, 0] > 0, torch.log(out).sum(-1), 0).sum()",
    "a name that is also read elsewhere": "logs = torch.log(out)\nprint(logs.sum())\nloss = torch.where(out > 0, logs, 0).sum()",
    "a condition that is known only later": "logs = torch.log(out)\nkept = out > 0\nloss = torch.where(kept, logs, 0).sum()",
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_other_expressions_stay(tmp_path, body: str) -> None:
    """Nothing is changed where nothing is thrown away, or the input is safe, or the source does not show which places."""
    source = f"{HEAD}{body}\nloss.backward()\n"
    assert rewritten(tmp_path, "safe_input_of_branch", source, "loss.backward()") == source


WRONG = {
    "the first branch": (
        "loss = torch.where(out > 0, torch.log(out), 0).sum()",
        "loss = torch.where(out > 0, torch.log(torch.where(out > 0, out, 1)), 0).sum()",
    ),
    "the second branch": (
        "loss = torch.where(out == 0, 0, out.sqrt()).sum()",
        "loss = torch.where(out == 0, 0, torch.where(out == 0, 1, out).sqrt()).sum()",
    ),
    "a quotient": (
        "loss = torch.where(y != 0, out / y, 0).sum()",
        "loss = torch.where(y != 0, out / torch.where(y != 0, y, 1), 0).sum()",
    ),
    "a difference in brackets": (
        "loss = torch.where(y != 0, x / (y - out), 0).sum()",
        "loss = torch.where(y != 0, x / torch.where(y != 0, y - out, 1), 0).sum()",
    ),
    "an exponential": (
        "loss = torch.where(out > 20, out, torch.exp(out)).sum()",
        "loss = torch.where(out > 20, out, torch.exp(torch.where(out > 20, 0, out))).sum()",
    ),
    "a power that no negative number has": (
        "loss = torch.where(y > out, 2 * (y - out) ** 1.5, 0).sum()",
        "loss = torch.where(y > out, 2 * torch.where(y > out, y - out, 1) ** 1.5, 0).sum()",
    ),
    "filled afterwards": (
        "loss = torch.log(out).masked_fill(out == 0, 0.0).sum()",
        "loss = torch.log(torch.where(out == 0, 1, out)).masked_fill(out == 0, 0.0).sum()",
    ),
    "multiplied by a mask": (
        "mask = (y > 0).float()\nloss = (mask * torch.log(out)).sum()",
        "loss = (mask * torch.log(torch.where(mask > 0, out, 1))).sum()",
    ),
    "through a name": (
        "root = out.sqrt()\nloss = torch.where(out > 0, root, 0).sum()",
        "root = torch.where(out > 0, out, 1).sqrt()",
    ),
}


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_branches_get_a_safe_input(tmp_path, body: str, wanted: str) -> None:
    """The argument is chosen by the condition that chooses the result; a second time nothing is left to do."""
    source = f"{HEAD}{body}\nloss.backward()\n"
    after = rewritten(tmp_path, "safe_input_of_branch", source, "loss.backward()")
    assert changed_lines(source, after) == [wanted]
    assert rewritten(tmp_path, "safe_input_of_branch", after, "loss.backward()") == after


def test_both_branches_of_a_selection(tmp_path) -> None:
    """Each of them has its own bad places: with one cured the NaN comes from the other."""
    body = "out = net(x)\nup = (out + 1) ** w\ndown = (1 - out) ** w\nloss = torch.where(out >= 0, up, down).sum()"
    source = f"{HEAD}w = torch.ones(1)\n{body}\nloss.backward()\n"
    after = rewritten(tmp_path, "safe_input_of_branch", source, "loss.backward()")
    assert changed_lines(source, after) == [
        "up = torch.where(out >= 0, out + 1, 1) ** w", "down = torch.where(out >= 0, 1, 1 - out) ** w",
    ]  # fmt: skip


SERIES = """def both(x):
    big = x.abs()
    a = torch.where(x > 1e-4, x.sin() / x, 1 - big / 6)
    b = torch.where(OTHER, (1 - x.cos()) / big, 0.5 - big / 24)
    return (a + b).sum()
loss = both(out)
"""


@pytest.mark.parametrize(
    ("other", "lines"),
    [
        (
            "x > 1e-4",
            [
                "a = torch.where(x > 1e-4, x.sin() / torch.where(x > 1e-4, x, 1), 1 - big / 6)",
                "b = torch.where(x > 1e-4, (1 - x.cos()) / torch.where(x > 1e-4, big, 1), 0.5 - big / 24)",
            ],
        ),
        ("x > 1e-3", ["b = torch.where(x > 1e-3, (1 - x.cos()) / torch.where(x > 1e-3, big, 1), 0.5 - big / 24)"]),
    ],
    ids=["one condition", "two conditions"],
)
def test_selections_by_one_condition(tmp_path, other: str, lines: list[str]) -> None:
    """Where one of them throws a value away the other does too: with one left, the gradient is still NaN."""
    source = f"{HEAD}{SERIES.replace('OTHER', other)}loss.backward()\n"
    assert changed_lines(source, rewritten(tmp_path, "safe_input_of_branch", source, "loss.backward()")) == lines
