"""Sequences are padded with the batch first where the loss counted time steps for samples."""

from __future__ import annotations

import pathlib

from tests.fix.rewriting import diff_lines, rewritten

SOURCE = """import torch
from torch.nn.utils.rnn import pad_sequence


def collate(rows):
    ids = pad_sequence([one for one, _ in rows], padding_value=0)
    return {"input_ids": ids, "labels": torch.tensor([level for _, level in rows])}


def step(model, batch):
    loss = model(**batch).loss
    return loss
"""
MESSAGE = "Expected input batch_size (20) to match target batch_size (16)."


def test_the_padding_puts_the_batch_first(tmp_path: pathlib.Path) -> None:
    """Where a tensor of the failing frame has a column for each label."""
    given = {"message": MESSAGE, "tensors": {"batch['input_ids']": "[20, 16] int64", "batch['labels']": "[16] int64"}}
    after = rewritten(tmp_path, "pad_batch_first", SOURCE, "loss = model", **given)
    assert diff_lines(SOURCE, after)[1:] == [
        "+    ids = pad_sequence([one for one, _ in rows], padding_value=0, batch_first=True)"
    ]
    assert rewritten(tmp_path, "pad_batch_first", after, "loss = model", **given) == after


def test_other_batches_stay(tmp_path: pathlib.Path) -> None:
    """Nothing was seen, or another tensor."""
    for tensors in ({}, {"batch['input_ids']": "[16, 20] int64"}):
        given = {"message": MESSAGE, "tensors": tensors}
        assert rewritten(tmp_path, "pad_batch_first", SOURCE, "loss = model", **given) == SOURCE


BOTH = """from torch.nn.utils.rnn import pad_sequence


def collate(rows):
    ids = pad_sequence([one for one, _ in rows])
    return {"input_ids": ids, "mask": pad_sequence([one != 0 for one in rows], batch_first=True)}
"""


def test_padding_in_two_ways(tmp_path: pathlib.Path) -> None:
    """What is padded beside a mask gets the mask's axes, where sizes do not fit; what is padded alone stays."""
    message = "The size of tensor a (4) must match the size of tensor b (3) at non-singleton dimension 3"
    after = rewritten(tmp_path, "pad_batch_first", BOTH, message=message)
    assert diff_lines(BOTH, after)[1:] == ["+    ids = pad_sequence([one for one, _ in rows], batch_first=True)"]
    assert rewritten(tmp_path, "pad_batch_first", after, message=message) == after
    assert rewritten(tmp_path, "pad_batch_first", BOTH, message="it failed") == BOTH
    alone = BOTH.replace(", batch_first=True", "")
    assert rewritten(tmp_path, "pad_batch_first", alone, message=message) == alone
