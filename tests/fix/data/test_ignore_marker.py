"""Labels that mark what nobody labelled, and that the loss takes for classes."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

MESSAGE = "Target 255 is out of bounds."
FUNCTION = """import torch.nn.functional as F

VOID = 255

def step(net, images, masks):
    return F.cross_entropy(net(images), masks)
"""
MODULE = """from torch import nn

criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

def hits(guess, target):
    return (guess == target)[target != 255].float().mean()

def step(net, images, target):
    return criterion(net(images), target)
"""
FILLED = """import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

criterion = nn.CrossEntropyLoss()

def collate(rows):
    tags = FILL
    return pad_sequence([a for a, _ in rows], batch_first=True), tags

def step(net, images, target):
    return criterion(net(images), target)
"""
OPPOSITE = MODULE.replace("[target != 255]", "[~(target == 255)]")


@pytest.mark.parametrize(
    ("source", "at", "wanted"),
    [
        (FUNCTION, "F.cross", "return F.cross_entropy(net(images), masks, ignore_index=VOID)"),
        (MODULE, "criterion(net", "criterion = nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=255)"),
        (OPPOSITE, "criterion(net", "criterion = nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=255)"),
    ],
    ids=["by name", "left out of a metric", "by the opposite"],
)
def test_names_the_marker(tmp_path: pathlib.Path, source: str, at: str, wanted: str) -> None:
    """Where the loss is called or made."""
    assert changed_lines(source, rewritten(tmp_path, "ignore_marker", source, at, message=MESSAGE)) == [wanted]


PADDED = [
    "pad_sequence([b for _, b in rows], True, -1)",
    "pad_sequence([b for _, b in rows], batch_first=True, padding_value=-1)",
    "torch.tensor([b + [-1] * (9 - len(b)) for _, b in rows])",
    "torch.full((len(rows), 9), -1)\n    for at, (_, b) in enumerate(rows):\n        tags[at, : len(b)] = b",
]
CLASSES = [
    "torch.cat([torch.ones(4), torch.full((4,), -1)])",
    "torch.tensor([1] * 4 + [-1] * 4)",
    "torch.full((8,), -1)\n    tags[:4] = 1",
    "torch.full((8,), -1)",
]


@pytest.mark.parametrize("code", PADDED)
def test_what_labels_are_padded_with(tmp_path: pathlib.Path, code: str) -> None:
    """Up to a length, or before they are written."""
    source = FILLED.replace("FILL", code)
    after = rewritten(tmp_path, "ignore_marker", source, "criterion(net", message="Target -1 is out of bounds.")
    assert changed_lines(source, after) == ["criterion = nn.CrossEntropyLoss(ignore_index=-1)"]


@pytest.mark.parametrize("code", CLASSES)
def test_a_class_of_minus_one_stays(tmp_path: pathlib.Path, code: str) -> None:
    """Left out, all of its samples would be lost, and the error with them."""
    source = FILLED.replace("FILL", code)
    assert (
        rewritten(tmp_path, "ignore_marker", source, "criterion(net", message="Target -1 is out of bounds.") == source
    )


def test_a_name_of_another_file(tmp_path: pathlib.Path) -> None:
    """By its name where the file of the loss imports it, else as the number."""
    for head, wanted in (("from labels import VOID\n", "ignore_index=VOID"), ("", "ignore_index=255")):
        source = head + FUNCTION.replace("VOID = 255\n", "")
        program = write(tmp_path, {"train.py": source, "labels.py": "VOID = 255\n"})
        incident = failed({"train.py": line_of(source, "F.cross")}, MESSAGE)
        proposal = best("ignore_marker", program, incident=incident)
        assert proposal is not None
        assert [edit.new for edit in proposal.edits] == [f", {wanted}"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (FUNCTION.replace("VOID", "CLASSES"), MESSAGE),
        (FUNCTION, "Target 7 is out of bounds."),
        (FUNCTION.replace("masks)", "masks, ignore_index=-1)"), MESSAGE),
        (MODULE.replace("[target != 255]", "[images.mean() != 255]"), MESSAGE),
        (FILLED.replace("FILL", "[b - 1 for _, b in rows]"), "Target -1 is out of bounds."),
        (
            FILLED.replace("tags = FILL", "sizes = torch.full((4,), 7)").replace(", tags", ", sizes"),
            "Target 7 is out of bounds.",
        ),
    ],
    ids=[
        "a count",
        "another label",
        "another marker is named",
        "another comparison",
        "counted from 0",
        "filled, but no labels",
    ],
)
def test_leaves(tmp_path: pathlib.Path, source: str, message: str) -> None:
    """A label that nothing marks may be a class that the model lacks."""
    assert rewritten(tmp_path, "ignore_marker", source, "(net(images)", message=message) == source
