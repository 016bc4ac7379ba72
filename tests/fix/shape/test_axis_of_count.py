"""Positions are as many as steps: what counts samples instead counts the second size."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

PROGRAM = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(50, 16))
        self.look = nn.Embedding(50, 16)
        self.encoder = nn.TransformerEncoderLayer(16, 4, batch_first=True)

    def forward(self, x):
{body}
        return self.encoder(x)
"""
SEEN = {"x": "[8, 24, 16] float32"}


def edited(
    folder: pathlib.Path, *body: str, sizes: tuple[int, int] = (24, 8), source: str = PROGRAM, **given: object
) -> list[str]:
    """The lines that are changed in a forward which raised at its sum."""
    text = source.format(body="\n".join(f"        {line}" for line in body))
    message = (
        f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({sizes[1]}) at non-singleton dimension 1"
    )
    tensors = given.get("tensors", SEEN)
    return changed_lines(text, rewritten(folder, "axis_of_count", text, "x = x + ", message=message, tensors=tensors))


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (["x = x + self.table[: x.size(0)]"], "x = x + self.table[: x.size(1)]"),
        (["x = x + self.table[: len(x)]"], "x = x + self.table[: x.size(1)]"),
        (["x = x + self.look(torch.arange(x.shape[0]))"], "x = x + self.look(torch.arange(x.size(1)))"),
        (["n = x.size(0)", "x = x + self.table[:n]"], "n = x.size(1)"),
        (["n = x.size(0)", "print(n)", "x = x + self.table[:n]"], "x = x + self.table[:x.size(1)]"),
        (
            ["places = torch.arange(x.size(0))", "x = x + self.look(places)"],
            "places = torch.arange(x.size(1))",
        ),
    ],
)
def test_the_steps_are_counted(tmp_path: pathlib.Path, body: list[str], changed: str) -> None:
    """In the sum itself, or where a name of it is made."""
    assert edited(tmp_path, *body) == [changed]


@pytest.mark.parametrize(
    ("body", "given"),
    [
        pytest.param(["x = x + self.table[: x.size(0)]"], {"source": PROGRAM.replace(", batch_first=True", "")}, id="time first"),
        pytest.param(["x = x + self.table[: x.size(0)]"], {"sizes": (24, 7)}, id="other sizes"),
        pytest.param(["x = x + self.table[: x.size(0)]"], {"tensors": {}}, id="not seen"),
        pytest.param(["x = x + self.table[1 : x.size(0)]"], {}, id="a part"),
        pytest.param(["x = x + self.table[: x.size(1)]"], {}, id="the steps"),
    ],
)  # fmt: skip
def test_left_as_it_is(tmp_path: pathlib.Path, body: list[str], given: dict[str, object]) -> None:
    """Only where the batch stands first, and the sizes are those that were refused."""
    assert edited(tmp_path, *body, **given) == []  # type: ignore[arg-type]
