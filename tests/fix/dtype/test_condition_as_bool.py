"""Masks of numbers where an operation takes bools."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

BYTE = "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char"
LONG = "masked_scatter_ only supports boolean masks, but got mask with dtype Long"
SELECT = "masked_select: expected BoolTensor for mask"
WHERE = "where expected condition to be a boolean tensor, but got a tensor with dtype Float"
GIVEN = "import torch\n\nx = torch.ones(2)\nmask = torch.ones(2, dtype=torch.uint8)\nturned = ~mask\n"
CALLS = {
    "a method": (BYTE, "y = x.masked_fill(mask, 0.0)", "y = x.masked_fill(mask.bool(), 0.0)"),
    "in place": (BYTE, "x.masked_fill_(1 - mask, 0.0)", "x.masked_fill_((1 - mask).bool(), 0.0)"),
    "turned round": (BYTE, "y = x.masked_fill(~mask, 0.0)", "y = x.masked_fill(~mask.bool(), 0.0)"),
    "turned round before": (BYTE, "y = x.masked_fill(turned, 0.0)", None),
    "a function": (BYTE, "y = torch.masked_fill(x, mask, 0.0)", "y = torch.masked_fill(x, mask.bool(), 0.0)"),
    "by its name": (BYTE, "y = x.masked_fill(mask=mask, value=0.0)", "y = x.masked_fill(mask=mask.bool(), value=0.0)"),
    "scatter": (LONG, "y = x.masked_scatter(mask, x)", "y = x.masked_scatter(mask.bool(), x)"),
    "select": (SELECT, "y = torch.masked_select(x, mask)", "y = torch.masked_select(x, mask.bool())"),
    "where": (WHERE, "y = torch.where(mask, x, -x)", "y = torch.where(mask.bool(), x, -x)"),
    "another message": ("it failed", "y = x.masked_fill(mask, 0.0)", None),
}


@pytest.mark.parametrize(("message", "call", "wanted"), CALLS.values(), ids=CALLS)
def test_masks(tmp_path: pathlib.Path, message: str, call: str, wanted: str | None) -> None:
    source = GIVEN + call + "\n"
    after = rewritten(tmp_path, "condition_as_bool", source, call, message=message)
    assert changed_lines(source, after) == ([wanted] if wanted else [])
