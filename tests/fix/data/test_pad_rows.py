"""Rows of several lengths are padded where one tensor is made of them."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "expected sequence of length 5 at dim 1 (got 7)"
PROGRAM = """import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence


def collate(batch):
    rows, labels = zip(*batch)
    MADE


table = nn.Embedding(9, 4TABLE)
"""
CASES = {
    "a name": (
        "return torch.tensor(rows), labels", "", "return pad_sequence([torch.tensor(row) for row in rows], batch_first=True), labels",
    ),
    "the table's own code": (
        "return torch.tensor(rows, dtype=torch.long)", ", padding_idx=8",
        "return pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=8)",
    ),
    "a comprehension": (
        'ids = torch.tensor([one["ids"] for one in batch])', "",
        'ids = pad_sequence([torch.tensor(one["ids"]) for one in batch], batch_first=True)',
    ),
    "labels": (
        "labels = torch.tensor(labels)", "", "labels = pad_sequence([torch.tensor(row) for row in labels], batch_first=True, padding_value=-100)",
    ),
    "an entry of labels": (
        'return {"labels": torch.tensor([tags for _, tags in batch])}', ", padding_idx=0",
        'return {"labels": pad_sequence([torch.tensor(tags) for _, tags in batch], batch_first=True, padding_value=-100)}',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "table", "wanted"), CASES.values(), ids=CASES)
def test_padded(made: str, table: str, wanted: str, tmp_path: pathlib.Path) -> None:
    source = PROGRAM.replace("MADE", made).replace("TABLE", table)
    assert changed_lines(source, rewritten(tmp_path, "pad_rows", source, made, message=MESSAGE)) == [wanted]
    assert rewritten(tmp_path, "pad_rows", source, made, message="it failed") == source
    assert rewritten(tmp_path, "pad_rows", source, "rows, labels = zip", message=MESSAGE) == source
