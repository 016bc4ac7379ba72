"""Joins, sums, masks and states that forget the batch, the layers or a stride: each runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import is_mended, mended, run  # noqa: E402
from tests.fix.rewriting import changed_lines  # noqa: E402

HEAD = """import torch
from torch import nn
torch.manual_seed(0)
cls, rows, lin = nn.Parameter(torch.ones(1, 1, 4)), torch.rand(3, 5, 4), nn.Linear(4, 6)
attention, padding = nn.MultiheadAttention(4, 2, batch_first=True), torch.arange(5)[None] >= torch.tensor([5, 3, 2])[:, None]
ids, table = torch.tensor([1.0, 3.0]), nn.Embedding(5, 4)
"""
WRONG = {
    "a token before each sample": (
        "expand_in_join",
        "out = torch.cat([cls, rows], dim=1)",
        "out = torch.cat([cls.expand(rows.size(0), -1, -1), rows], dim=1)",
        "torch.stack([torch.cat([cls[0], row]) for row in rows])",
    ),
    "a token behind each sample": (
        "expand_in_join",
        "out = torch.cat((rows, cls), 1)",
        "out = torch.cat((rows, cls.expand(rows.size(0), -1, -1)), 1)",
        "torch.stack([torch.cat([row, cls[0]]) for row in rows])",
    ),
    "an equation of one sample": (
        "batched_einsum",
        'out = torch.einsum("id,jd->ij", lin(rows), lin(rows))',
        'out = torch.einsum("...id,...jd->...ij", lin(rows), lin(rows))',
        "lin(rows) @ lin(rows).mT",
    ),
    "a sum of whole numbers": (
        "float_accumulator",
        "out = torch.tensor(0)\nfor row in rows:\n    out += row.sum()",
        "out = torch.tensor(0.0)",
        "sum(row.sum() for row in rows)",
    ),
    "zeros of whole numbers": (
        "float_accumulator",
        "out = torch.zeros(4, dtype=torch.long)\nout += rows.sum((0, 1))",
        "out = torch.zeros(4, dtype=torch.float32)",
        "rows.sum((0, 1))",
    ),
    "a mask of the padding": (
        "mask_of_padding",
        "out = attention(rows, rows, rows, attn_mask=padding)[0]",
        "out = attention(rows, rows, rows, key_padding_mask=padding)[0]",
        "attention(rows, rows, rows, attn_mask=padding[:, None].expand(3, 5, 5).repeat_interleave(2, 0))[0]",
    ),
    "an embedding of floats": ("whole_index", "out = table(ids)", "out = table(ids.long())", "table.weight[[1, 3]]"),
    "a state without layers": (
        "layers_of_state",
        "rnn = nn.GRU(4, 6, 2, batch_first=True)\nh0 = torch.zeros(3, 6)\nout = rnn(rows, h0)[0].shape",
        "h0 = torch.zeros(rnn.num_layers, 3, 6)",
        "torch.Size([3, 5, 6])",
    ),
}  # fmt: skip
RIGHT = {
    "two batches": ("expand_in_join", "out = torch.cat([rows[:2], rows], dim=1)"),
    "one operand with a batch": ("batched_einsum", 'out = torch.einsum("id,jd->ij", rows[0], rows)'),
    "another mask": ("mask_of_padding", "out = attention(rows, rows, rows, attn_mask=padding[:, :4])"),
    "whole numbers on purpose": ("float_accumulator", "counts = torch.tensor([1, 2])\ncounts += rows[0, 0, :2]"),
}


@pytest.mark.parametrize(("codemod", "body", "line", "equal"), WRONG.values(), ids=WRONG)
def test_what_was_meant_is_computed(tmp_path: pathlib.Path, codemod: str, body: str, line: str, equal: str) -> None:
    """One line changes, and the result is that of the same thing written otherwise."""
    assert is_mended(codemod, HEAD, body, line, equal, tmp_path)


@pytest.mark.parametrize(("codemod", "body"), RIGHT.values(), ids=RIGHT)
def test_nothing_is_guessed(tmp_path: pathlib.Path, codemod: str, body: str) -> None:
    """Where the sizes do not say what was meant, or whole numbers are."""
    assert mended(codemod, f"{HEAD}{body}\n", tmp_path) == f"{HEAD}{body}\n"


BLOCK = """import torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, a, b, stride=1):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(a, b, BODY), nn.ReLU())
        self.skip = SKIP
    def forward(self, x):
        return self.body(x) + self.skip(x)
out = Block(2, 4, STRIDE)(torch.rand(3, 2, 8, 8)).shape
"""
BLOCKS = {
    "a stride": ("3, stride=stride, padding=1", "nn.Conv2d(a, b, 1)", "2", "self.skip = nn.Conv2d(a, b, 1, stride=stride)", 4),
    "a padding": ("3", "nn.Conv2d(a, b, 1)", "1", "self.body = nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU())", 8),
}  # fmt: skip


@pytest.mark.parametrize(("body", "skip", "stride", "line", "size"), BLOCKS.values(), ids=BLOCKS)
def test_a_shortcut_of_the_same_size(
    tmp_path: pathlib.Path, body: str, skip: str, stride: str, line: str, size: int
) -> None:
    """The stride of the block is that of both sides; a convolution keeps the size."""
    source = BLOCK.replace("BODY", body).replace("SKIP", skip).replace("STRIDE", stride)
    after = mended("shortcut_fits", source, tmp_path)
    assert changed_lines(source, after) == [line]
    assert run(after, tmp_path / "after.py")["out"] == (3, 4, size, size)
