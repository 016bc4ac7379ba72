"""What a mask chose of the predictions meets what the same mask chooses of the targets."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "Expected input batch_size (35) to match target batch_size (96)."
SEEN = {"logits": "[8, 12, 60] float32", "ids": "[8, 12] int64", "mask": "[8, 12] bool", "flat": "[96] int64"}


def edited(
    folder: pathlib.Path, *lines: str, tensors: dict[str, str] | None = None, message: str = MESSAGE
) -> list[str]:
    """The lines that change where the last one raised."""
    source = "\n".join(["import torch.nn.functional as F", *lines, ""])
    given = SEEN if tensors is None else tensors
    return changed_lines(source, rewritten(folder, "same_choice", source, "loss = ", message=message, tensors=given))


@pytest.mark.parametrize(
    ("lines", "changed"),
    [
        (["loss = F.cross_entropy(logits[mask], ids.view(-1))"], "loss = F.cross_entropy(logits[mask], ids[mask])"),
        (["loss = F.cross_entropy(logits[mask], ids)"], "loss = F.cross_entropy(logits[mask], ids[mask])"),
        (["picked = logits[mask]", "loss = F.cross_entropy(picked, ids.flatten())"], "loss = F.cross_entropy(picked, ids[mask])"),
        (["loss = F.cross_entropy(logits.view(-1, 60)[mask.view(-1)], ids.view(-1))"], "loss = F.cross_entropy(logits.view(-1, 60)[mask.view(-1)], ids[mask])"),
        (["loss = F.cross_entropy(logits.view(-1, 60), ids[mask])"], "loss = F.cross_entropy(logits[mask], ids[mask])"),
    ],
)  # fmt: skip
def test_chosen(tmp_path: pathlib.Path, lines: list[str], changed: str) -> None:
    """Whichever side was forgotten."""
    assert edited(tmp_path, *lines) == [changed]


@pytest.mark.parametrize(
    ("line", "tensors"),
    [
        pytest.param("loss = F.cross_entropy(logits[mask], ids.view(-1))", {}, id="not seen"),
        pytest.param(
            "loss = F.cross_entropy(logits[mask], ids.view(-1))", SEEN | {"mask": "[8, 12] int64"}, id="an index"
        ),
        pytest.param(
            "loss = F.cross_entropy(logits[mask], ids.view(-1))", SEEN | {"ids": "[8, 11] int64"}, id="other rows"
        ),
        pytest.param("loss = F.cross_entropy(logits[mask], ids[mask])", SEEN, id="both chosen"),
        pytest.param("loss = F.cross_entropy(logits[mask], flat)", SEEN, id="flat already"),
    ],
)
def test_left_as_it_is(tmp_path: pathlib.Path, line: str, tensors: dict[str, str]) -> None:
    """Only by a mask that was seen to fit both."""
    assert edited(tmp_path, line, tensors=tensors) == []


def test_another_failure(tmp_path: pathlib.Path) -> None:
    """Nothing is said of rows."""
    assert (
        edited(tmp_path, "loss = F.cross_entropy(logits[mask], ids.view(-1))", message="Target 60 is out of bounds")
        == []
    )
