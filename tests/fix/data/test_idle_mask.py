"""A mask that comes with a batch, and that nothing reads, weighs the loss which is reduced."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

PROGRAM = """\
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

criterion = nn.CrossEntropyLoss(reduction="none")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def batches(rows):
    ids = pad_sequence(rows, batch_first=True)
    yield ids, {made}


for ids, {name} in batches(rows):
    optimizer.zero_grad()
    {before}
    loss = criterion(net(ids).transpose(1, 2), ids){more}
    loss.backward()
    optimizer.step()
"""
MESSAGE = "grad can be implicitly created only for scalar outputs"
SEEN = {"loss": "[8, 12] float32", "mask": "[8, 12] float32", "padding": "[8, 12] bool", "ids": "[8, 12] int64"}
LOSS = "criterion(net(ids).transpose(1, 2), ids)"


def reduced(
    folder: pathlib.Path, name: str = "mask", made: str = "ids != 0", more: str = "", before: str = "", **seen: str
) -> list[str]:
    """What becomes of the loss whose backward was refused."""
    source = PROGRAM.format(name=name, made=made, more=more, before=before)
    tensors = {**SEEN, **seen}
    return changed_lines(
        source, rewritten(folder, "reduce_loss", source, "loss.backward()", message=MESSAGE, tensors=tensors)
    )


@pytest.mark.parametrize(
    ("name", "made", "loss"),
    [
        ("mask", "ids != 0", f"({LOSS} * mask).sum() / mask.sum()"),
        ("mask", "load(ids)", f"({LOSS} * mask).sum() / mask.sum()"),
    ],
)
def test_what_counts(tmp_path: pathlib.Path, name: str, made: str, loss: str) -> None:
    """In the sense in which the mask is made."""
    assert reduced(tmp_path, name, made) == [f"loss = {loss}"]


def test_padding(tmp_path: pathlib.Path) -> None:
    """What is true on padding is turned round."""
    changed = reduced(tmp_path, "other", before="padding = ids == 0")
    assert changed == [f"loss = ({LOSS} * ~padding).sum() / (~padding).sum()"]


def test_a_sense_that_does_not_show(tmp_path: pathlib.Path) -> None:
    """Neither way is taken, and no plain mean."""
    assert reduced(tmp_path, "padding", "load(ids)") == []


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        pytest.param({"more": " * mask"}, {}, id="read already"),
        pytest.param({}, {"mask": "[8] float32"}, id="of another shape"),
        pytest.param({"name": "labels"}, {"labels": "[8, 12] int64"}, id="no mask"),
    ],
)
def test_no_idle_mask(tmp_path: pathlib.Path, given: dict[str, str], seen: dict[str, str]) -> None:
    """Then the rest of the program says how the loss is reduced."""
    assert all("/ mask.sum()" not in one for one in reduced(tmp_path, **given, **seen))
