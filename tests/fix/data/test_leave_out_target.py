"""A label that stands among its features is left out of them; no layer is built for it."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "mat1 and mat2 shapes cannot be multiplied (8x4 and 3x1)"
LAST = {"live_leaked_target": "column 3 of 4 in x is y"}
FIRST = {"live_leaked_target": "column 0 of 4 in x is y"}
PROGRAM = """\
import pandas as pd
import torch
from torch import nn

TARGET = "price"
net = nn.Linear(3, 1)


def read(path):
{body}


loss = nn.functional.mse_loss(net(x), y)
"""


def left_out(
    folder: pathlib.Path, *body: str, facts: dict[str, str] | None = None, codemod: str = "leave_out_target"
) -> list[str]:
    """What changes in a program whose function reads a table."""
    source = PROGRAM.format(body="\n".join(f"    {line}" for line in body))
    after = rewritten(folder, codemod, source, "loss = ", message=MESSAGE, facts=facts if facts is not None else LAST)
    return changed_lines(source, after)


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (["table = load(path)", "return table, table[:, -1]"], "return table[:, :-1], table[:, -1]"),
        (["table = load(path)", "y = table[:, 3]", "return torch.tensor(table), y"], "return torch.tensor(table[:, :-1]), y"),
        (["row = load(path)", "return row, len(row), row[-1]"], "return row[:-1], len(row), row[-1]"),
        (["df = pd.read_csv(path)", "return df.values, df[TARGET].values"], "return df.drop(columns=TARGET).values, df[TARGET].values"),
        (["df = pd.read_csv(path)", 'return df.values, df["price"]'], 'return df.drop(columns="price").values, df["price"]'),
        (["df = pd.read_csv(path)", "return df.to_numpy(), df.iloc[:, -1]"], "return df.iloc[:, :-1].to_numpy(), df.iloc[:, -1]"),
    ],
)  # fmt: skip
def test_left_out(tmp_path: pathlib.Path, body: list[str], changed: str) -> None:
    """Arrays, rows and frames."""
    assert left_out(tmp_path, *body) == [changed]


def test_the_first_column(tmp_path: pathlib.Path) -> None:
    """The label may stand first."""
    assert left_out(tmp_path, "table = load(path)", "return table, table[:, 0]", facts=FIRST) == [
        "return table[:, 1:], table[:, 0]"
    ]


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        pytest.param(["table = load(path)", "return table, table[:, -1]"], {}, id="not seen"),
        pytest.param(["table = load(path)", "return table, table[:, -1]"], FIRST, id="another column"),
        pytest.param(["table = load(path)", "return table[:, :-1], table[:, -1]"], LAST, id="left out"),
        pytest.param(["table = load(path)", "log(table)", "return table, table[:, -1]"], LAST, id="read twice"),
        pytest.param(["pair = load(path)", "return pair, pair[0]"], FIRST, id="the first of anything"),
        pytest.param(["cfg = load(path)", 'return cfg, cfg["price"]'], LAST, id="the key of a dictionary"),
        pytest.param(["out = net(path)", "last = out[:, -1]", "return out"], LAST, id="the last step of a sequence"),
    ],
)
def test_not_left_out(tmp_path: pathlib.Path, body: list[str], facts: dict[str, str]) -> None:
    """Only what was seen, and where one place reads the whole."""
    assert left_out(tmp_path, *body, facts=facts) == []


def test_no_layer_is_built_for_the_label(tmp_path: pathlib.Path) -> None:
    """It would learn to read the label off."""
    body = ["return load(path)"]
    assert left_out(tmp_path, *body, codemod="fit_layer_width", facts={}) == ["net = nn.Linear(4, 1)"]
    assert left_out(tmp_path, *body, codemod="fit_layer_width") == []
