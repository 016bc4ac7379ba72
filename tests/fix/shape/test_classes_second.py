"""A criterion that gets a sequence of predictions is given the classes as dimension 1."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Proposal
from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
CLASSES = 10
head, criterion = nn.Linear(8, CLASSES), nn.CrossEntropyLoss()
logits, labels = head(torch.randn(12, 46, 8)), torch.randint(10, (12, 46))
"""


def proposed(folder: pathlib.Path, line: str, wanted: tuple = (12, 10), given: tuple = (12, 46)) -> Proposal | None:
    source = HEAD + line + "\n"
    return best(
        "classes_second",
        write(folder, {"train.py": source}),
        incident=failed({"train.py": line_of(source, line)}),
        fields={"wanted_shape": str(list(wanted)), "target_shape": str(list(given))},
    )


@pytest.mark.parametrize("call", ["criterion(logits, labels)", "F.cross_entropy(logits, labels, reduction='sum')"])
def test_the_classes_come_second(tmp_path: pathlib.Path, call: str) -> None:
    """The first argument is transposed; as the layer has so many outputs, without a doubt."""
    done = proposed(tmp_path, f"loss = {call}")
    assert done is not None
    (edit,) = done.edits
    text = (tmp_path / "train.py").read_text()
    assert (text[: edit.start] + edit.new + text[edit.end :]).splitlines()[-1] == f"loss = {call}".replace(
        "logits,", "logits.transpose(1, 2),"
    )
    assert done.applicability is None


def test_a_number_that_no_layer_has(tmp_path: pathlib.Path) -> None:
    """It may be another length: the edit is unsafe."""
    done = proposed(tmp_path, "loss = criterion(logits, labels)", wanted=(12, 23))
    assert done is not None
    assert done.applicability == "unsafe"


@pytest.mark.parametrize(
    ("line", "wanted", "given"),
    [
        ("loss = criterion(logits, labels)", (12, 45), (12, 46)),
        ("loss = criterion(logits, labels)", (6, 10), (12, 46)),
        ("loss = criterion(logits, labels)", (12, 10, 10), (12, 46, 46)),
        ("loss = F.mse_loss(logits, labels)", (12, 10), (12, 46)),
    ],
)
def test_other_faults_stay(tmp_path: pathlib.Path, line: str, wanted: tuple, given: tuple) -> None:
    """A cut end, another batch, an image, another criterion."""
    assert proposed(tmp_path, line, wanted, given) is None


@pytest.mark.parametrize(
    ("line", "labels", "wanted"),
    [
        ("criterion(logits, labels)", "[12, 46]", "criterion(logits.permute(1, 2, 0), labels)"),
        ("F.cross_entropy(logits, target=labels)", "[12, 46]", "F.cross_entropy(logits.permute(1, 2, 0), target=labels)"),
        ("criterion(logits, labels)", "[46, 12]", None),
        ("criterion(logits, labels)", "[12, 45]", None),
    ],
    ids=["time first", "by its name", "the same order", "another length"],
)  # fmt: skip
def test_time_comes_last(tmp_path: pathlib.Path, line: str, labels: str, wanted: str | None) -> None:
    """Of logits (46, 12, 10), by what the live program had: the sizes of the first two axes are those of the labels, turned."""
    source = HEAD + f"loss = {line}\n"
    tensors = {"logits": "[46, 12, 10] float32", "labels": f"{labels} int64"}
    incident = failed({"train.py": line_of(source, line)}, tensors=tensors)
    found = best("classes_second", write(tmp_path, {"train.py": source}), incident=incident)
    assert (changed_lines(source, splice(source, found.edits)) if found else None) == (
        [f"loss = {wanted}"] if wanted else None
    )


ROWS = "Expected input batch_size ({}) to match target batch_size ({})."
FLAT = {
    "the labels are flat": (
        "criterion(logits, labels.flatten())", (12, 552), {"logits": "[12, 46, 10] float32", "labels": "[12, 46] int64"},
        "criterion(logits.flatten(0, 1), labels.flatten())",
    ),
    "a part of them": (
        "criterion(logits, labels[:, 1:].reshape(-1))", (12, 540), {"logits": "[12, 45, 10] float32", "labels": "[12, 46] int64"},
        "criterion(logits.flatten(0, 1), labels[:, 1:].reshape(-1))",
    ),
    "the logits are flat": (
        "criterion(logits, labels)", (552, 12), {"logits": "[552, 10] float32", "labels": "[12, 46] int64"},
        "criterion(logits, labels.flatten())",
    ),
    "time first": (
        "criterion(logits, labels.flatten())", (46, 552), {"logits": "[46, 12, 10] float32", "labels": "[12, 46] int64"}, None,
    ),
    "another number": (
        "criterion(logits, labels.flatten())", (12, 540), {"logits": "[12, 46, 10] float32", "labels": "[12, 45] int64"}, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "rows", "tensors", "wanted"), FLAT.values(), ids=FLAT)
def test_both_sides_are_flat(
    tmp_path: pathlib.Path, call: str, rows: tuple[int, int], tensors: dict[str, str], wanted: str | None
) -> None:
    """Where one side has a row for each step; not where its steps come first, which would meet other labels."""
    source = f"{HEAD}loss = {call}\n"
    incident = failed({"train.py": line_of(source, "loss =")}, ROWS.format(*rows), tensors=tensors)
    done = best("classes_second", write(tmp_path, {"train.py": source}), incident=incident)
    after = splice(source, done.edits) if done is not None else source
    assert changed_lines(source, str(after)) == ([f"loss = {wanted}"] if wanted else [])


@pytest.mark.parametrize(
    ("call", "rows", "tensors", "kind"),
    [
        (*FLAT["the labels are flat"][:3], None),
        ("criterion(logits, flat)", (12, 552), {"logits": "[12, 46, 10] float32", "flat": "[552] int64"}, "unsafe"),
        (*FLAT["the logits are flat"][:3], "unsafe"),
    ],
    ids=["seen whole", "flat labels", "flat logits"],
)
def test_what_is_flat_already_may_have_had_its_steps_first(
    tmp_path: pathlib.Path, call: str, rows: tuple[int, int], tensors: dict[str, str], kind: str | None
) -> None:
    source = f"{HEAD}flat = labels.flatten()\nloss = {call}\n"
    incident = failed({"train.py": line_of(source, "loss =")}, ROWS.format(*rows), tensors=tensors)
    done = best("classes_second", write(tmp_path, {"train.py": source}), incident=incident)
    assert done is not None
    assert done.applicability == kind
