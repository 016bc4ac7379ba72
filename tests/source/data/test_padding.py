"""Masks of padding, and where they are true."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.data.padding import shows_tokens
from explainer.source.value.binding import Value
from tests.fix.rewriting import write

SOURCES = {
    "positions below lengths": ("mask = torch.arange(n)[None, :] < lengths[:, None]", True),
    "lengths above positions": ("mask = lens.unsqueeze(1) > torch.arange(n).expand(4, n)", True),
    "positions from lengths on": ("mask = torch.arange(n) >= x_len[:, None]", False),
    "as methods": ("mask = torch.arange(n).lt(lengths[:, None])", True),
    "ids that are no padding": ("mask = ids != tokenizer.pad_token_id", True),
    "ids that are padding": ("mask = ids.eq(PAD)", False),
    "ids of 0": ("mask = (ids == 0).unsqueeze(1)", False),
    "turned round": ("mask = ~(ids == 0)[:, None, :]", True),
    "turned round by a call": ("mask = (ids != pad).logical_not()", False),
    "through a name": ("shown = ids != 0\nmask = ~shown.bool()", False),
    "0 of a mask": ("hidden = ids == 0\nmask = hidden != 0", False),
    "of a mask of tokens": ("shown = ids != 0\nmask = shown == 0", False),
    "by a key of the batch": ("def collate(rows):\n    return {'mask': torch.arange(4) < lengths}", True),
    "nothing is known": ("mask = load(path)", None),
    "positions and another number": ("mask = torch.arange(n) < half", None),
    "positions and a prefix": ("mask = torch.arange(n) < prefix_len", None),
    "two positions": ("mask = torch.arange(n)[None] <= torch.arange(n)[:, None]", None),
    "one of two": ("mask = ids == 0\nif flip:\n    mask = ids != 0", None),
    "made of itself": ("def f(mask):\n    mask = ~mask\n    return f(mask)", None),
    "0 of something else": ("mask = (labels[:, None] - labels[None]) != 0", None),
    "a class": ("mask = labels == 3", None),
}


@pytest.mark.parametrize(("source", "wanted"), SOURCES.values(), ids=SOURCES)
def test_where_it_is_true(tmp_path: pathlib.Path, source: str, wanted: bool | None) -> None:
    """Read of how it is made, through names, reshapes and the keys of a batch."""
    program = write(tmp_path, {"train.py": f"import torch\n{source}\nuse(mask)\n"})
    (file,) = program.parsed()
    read = [
        one for one in file.walk() if isinstance(one, ast.Name) and one.id == "mask" and isinstance(one.ctx, ast.Load)
    ]
    assert shows_tokens(Value(read[-1], file), program) is wanted
