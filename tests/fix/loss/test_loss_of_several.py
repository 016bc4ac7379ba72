"""Rows that name several classes get the loss of several labels, where the program takes no single class for its answer."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

MESSAGE = "Expected floating point type for target with class probabilities, got Long"
SEVERAL = {"live_hot_rows": "1 to 3"}


def edited(
    folder: pathlib.Path, source: str, codemod: str = "loss_of_several", facts: dict[str, str] | None = None
) -> list[str]:
    """The lines that a codemod changes."""
    given = SEVERAL if facts is None else facts
    return changed_lines(source, rewritten(folder, codemod, source, "loss = ", message=MESSAGE, facts=given))


MODULE = """\
from torch import nn

criterion = nn.CrossEntropyLoss()
for x, y in loader:
    loss = criterion(net(x), y)
"""
FUNCTION = """\
import torch.nn.functional as F

for x, y in loader:
    loss = F.cross_entropy(net(x), y)
"""


def test_a_module(tmp_path: pathlib.Path) -> None:
    """Its class, and the dtype of what it is given."""
    assert edited(tmp_path, MODULE) == ["criterion = nn.BCEWithLogitsLoss()", "loss = criterion(net(x), y.float())"]


def test_a_function(tmp_path: pathlib.Path) -> None:
    """Its name."""
    assert edited(tmp_path, FUNCTION) == ["loss = F.binary_cross_entropy_with_logits(net(x), y.float())"]


@pytest.mark.parametrize(
    "source",
    [
        MODULE + "print(net(x).argmax(1))\n",
        MODULE.replace("CrossEntropyLoss()", "CrossEntropyLoss(label_smoothing=0.1)"),
        MODULE.replace("nn.CrossEntropyLoss", "CrossEntropyLoss").replace("import nn", "import nn\nfrom torch.nn import CrossEntropyLoss"),
    ],
    ids=["one answer is taken", "an option", "a name of its own"],
)  # fmt: skip
def test_left_as_it_is(tmp_path: pathlib.Path, source: str) -> None:
    """Where the program says otherwise, or the loss has no plain successor; nor are the rows taken for probabilities then."""
    assert edited(tmp_path, source) == []
    assert edited(tmp_path, source, "cast_target") == []


@pytest.mark.parametrize("facts", [{"live_hot_rows": "1 to 1"}, {}], ids=["seen", "not seen"])
def test_one_class_each(tmp_path: pathlib.Path, facts: dict[str, str]) -> None:
    """One-hot rows are probabilities; safely so where they were seen to be that."""
    assert edited(tmp_path, FUNCTION, facts=facts) == []
    assert edited(tmp_path, FUNCTION, "cast_target", facts=facts) == ["loss = F.cross_entropy(net(x), y.float())"]
    program = write(tmp_path, {"train.py": FUNCTION})
    incident = failed({"train.py": line_of(FUNCTION, "loss = ")}, MESSAGE, code="loss = ", facts=facts)
    proposal = best("cast_target", program, incident=incident)
    assert proposal is not None
    assert proposal.applicability == (None if facts else "unsafe")
