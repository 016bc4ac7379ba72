"""Integers that a layer with float weights is given as its input become floats."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

FORM = {"left_type": "long int", "right_type": "float"}
HEAD = """import torch
from torch import nn
net = nn.Sequential(nn.Linear(5, 4), nn.ReLU())
x, y = load()
"""
GIVEN = {
    "a module's input": (HEAD + "loss = loss_of(net(x), y)\n", {"x": "[8, 5] int64", "y": "[8] int64"}, ["loss = loss_of(net(x.float()), y)"]),
    "not seen": (HEAD + "loss = loss_of(net(x), y)\n", {}, ["loss = loss_of(net(x.float()), y)"]),
    "the one that was seen to count": (
        HEAD + "loss = net(x).sum() + net(z).sum()\n", {"x": "[8, 5] float32", "z": "[8, 5] int32"},
        ["loss = net(x).sum() + net(z.float()).sum()"],
    ),
    "a part that is not known": (
        "import torch\ndef score(model, batch):\n    loss = model.conv(batch.pixels).mean()\n", {},
        ["loss = model.conv(batch.pixels.float()).mean()"],
    ),
}  # fmt: skip
STAYS = {
    "ids of an embedding": (HEAD + "emb = nn.Embedding(9, 5)\nloss = net(emb(x)).sum()\n", {"x": "[8, 5] int64"}, FORM),
    "two that may be meant": (HEAD + "loss = net(x).sum() + net(z).sum()\n", {}, FORM),
    "images": (HEAD + "loss = net(x).sum()\n", {"x": "[8, 5] uint8"}, {**FORM, "left_type": "unsigned char"}),
    "a layer in half precision": (
        HEAD + "loss = net(x).sum()\n",
        {"x": "[8, 5] int64"},
        {**FORM, "right_type": "Half"},
    ),
    "floats": (HEAD + "loss = net(x).sum()\n", {}, {**FORM, "left_type": "double"}),
}


@pytest.mark.parametrize(("source", "tensors", "wanted"), GIVEN.values(), ids=GIVEN)
def test_what_the_layer_gets_is_cast(tmp_path: pathlib.Path, source: str, tensors: dict, wanted: list[str]) -> None:
    after = rewritten(tmp_path, "integers_as_floats", source, "loss =", tensors=tensors, fields=FORM)
    assert changed_lines(source, after) == wanted


@pytest.mark.parametrize(("source", "tensors", "fields"), STAYS.values(), ids=STAYS)
def test_what_stays(tmp_path: pathlib.Path, source: str, tensors: dict, fields: dict) -> None:
    """Ids, bytes that may be pixels, and what another edit casts."""
    assert rewritten(tmp_path, "integers_as_floats", source, "loss =", tensors=tensors, fields=fields) == source
