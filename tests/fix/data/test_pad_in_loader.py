"""A loader whose rows are token ids of several lengths."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.mending import mended, run
from tests.fix.rewriting import changed_lines, failed, line_of, write

PROGRAM = """import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        ids = IDS
        return ROW


table = TABLE
loss = LOSS
for batch in DataLoader(Rows(), 2):
    pass
"""
TABLE, LOSS = "nn.Embedding(9, 2, padding_idx=0)", "nn.CrossEntropyLoss()"
IDS = "torch.arange(1, 3 + i)"
PAD = "nn.utils.rnn.pad_sequence([row[0] for row in rows], batch_first=True)"
LOADER = "for batch in DataLoader(Rows(), 2, collate_fn=pad_batch):"
CURED = {
    "a number": (
        IDS, "ids, i % 2", TABLE,
        f"return {PAD}, torch.utils.data.default_collate([row[1] for row in rows])",
    ),
    "a dictionary": (
        IDS, "{'ids': ids, 'label': i % 2}", TABLE,
        'return {"ids": nn.utils.rnn.pad_sequence([row["ids"] for row in rows], batch_first=True), '
        '"label": torch.utils.data.default_collate([row["label"] for row in rows])}',
    ),
    "lists": (
        "list(range(1, 3 + i))", "ids, i % 2", TABLE,
        "return nn.utils.rnn.pad_sequence([torch.as_tensor(row[0]) for row in rows], batch_first=True), "
        "torch.utils.data.default_collate([row[1] for row in rows])",
    ),
    "a mask": (
        IDS, "{'ids': ids, 'mask': ids > 0}", "nn.Embedding(9, 2, padding_idx=8)",
        'return {"ids": nn.utils.rnn.pad_sequence([row["ids"] for row in rows], batch_first=True, padding_value=8), '
        '"mask": nn.utils.rnn.pad_sequence([row["mask"] for row in rows], batch_first=True)}',
    ),
    "a code of padding": (
        IDS, "ids, i % 2", "nn.Embedding(9, 2, padding_idx=8)",
        f"return {PAD[:-1]}, padding_value=8), torch.utils.data.default_collate([row[1] for row in rows])",
    ),
}  # fmt: skip


def source_of(ids: str, row: str, table: str, loss: str = LOSS) -> str:
    return PROGRAM.replace("IDS", ids).replace("ROW", row).replace("TABLE", table).replace("LOSS", loss)


@pytest.mark.torch
@pytest.mark.parametrize(("ids", "row", "table", "wanted"), CURED.values(), ids=CURED)
def test_the_rows_are_padded(tmp_path: pathlib.Path, ids: str, row: str, table: str, wanted: str) -> None:
    """With the code that the table keeps for padding; the rest of a batch is as it was."""
    pytest.importorskip("torch")
    source = source_of(ids, row, table)
    after = mended("pad_in_loader", source, tmp_path)
    assert changed_lines(source, after) == ["def pad_batch(rows):", wanted, LOADER]
    run(after, tmp_path / "after.py")


LEFT = {
    "no padding known": (IDS, "nn.Embedding(9, 2)"),
    "rows of features": ("torch.ones(3 + i, 2)", TABLE),
}


@pytest.mark.torch
@pytest.mark.parametrize(("ids", "table"), LEFT.values(), ids=LEFT)
def test_others_stay(tmp_path: pathlib.Path, ids: str, table: str) -> None:
    """What stands for nothing is not known there: samples may be cropped, resized or left out as well."""
    pytest.importorskip("torch")
    source = source_of(ids, "ids, i % 2", table)
    assert mended("pad_in_loader", source, tmp_path) == source


def test_labels_that_are_rows(tmp_path: pathlib.Path) -> None:
    """First they are taken for numbers, as most are; the next try pads them with what the loss leaves out."""
    source = source_of(IDS, "ids, ids % 2", TABLE).replace("pass", "value = loss(table(batch[0]), batch[1])")
    message = "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1"
    incident = failed({"train.py": line_of(source, "for batch")}, message)
    context = Context(program=write(tmp_path, {"train.py": source}), incident=incident)
    first, second = (splice(source, one.edits) or "" for one in find_codemod("pad_in_loader")(context))
    labels = "nn.utils.rnn.pad_sequence([row[1] for row in rows], batch_first=True, padding_value=-100)"
    assert "default_collate([row[1]" in first
    assert f"return {PAD}, {labels}" in second
