"""Labels of several kinds at once are floats where a library's own loss takes them as probabilities."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame
from tests.fix.rewriting import changed_lines, failed, write

TEXT = """import torch
def collate(rows):
    batch = {"ids": torch.tensor([row["ids"] for row in rows])}
    LABELS
    return batch
"""
MADE = {
    "no dtype": ('batch["labels"] = torch.tensor([row["tags"] for row in rows])', 'batch["labels"] = torch.tensor([row["tags"] for row in rows], dtype=torch.float)'),
    "int64": ('batch.update({"labels": torch.tensor(rows, dtype=torch.long)})', 'batch.update({"labels": torch.tensor(rows, dtype=torch.float)})'),
    "a cast": ('batch["labels"] = rows.tags.long()', 'batch["labels"] = rows.tags.float()'),
    "the old name": ('batch["labels"] = torch.LongTensor(rows)', 'batch["labels"] = torch.FloatTensor(rows)'),
    "whole numbers": ('batch["labels"] = [int(one in tags) for one in TAGS]', 'batch["labels"] = [float(one in tags) for one in TAGS]'),
    "a choice": ('batch["labels"] = [1 if one in tags else 0 for one in TAGS]', 'batch["labels"] = [1.0 if one in tags else 0.0 for one in TAGS]'),
    "mapped": ('batch["labels"] = list(map(int, rows.tags))', 'batch["labels"] = list(map(float, rows.tags))'),
    "counted up": ('hot = [0] * 5; hot[2] = 1; batch["labels"] = hot', 'hot = [0.0] * 5; hot[2] = 1; batch["labels"] = hot'),
}  # fmt: skip
RIGHT = [
    'batch["labels"] = torch.tensor(rows, dtype=torch.float32)',
    'batch["labels"] = rows.float()',
    'batch["labels"] = rows',
    'batch["labels"] = [float(one) for one in rows]',
    'batch["labels"] = [one.tag for one in rows]',
]


def found(text: str, folder: pathlib.Path, function: str = "binary_cross_entropy_with_logits") -> list:
    frames = (
        Frame(file="train.py", line=1, function="main", code="loss = model(**batch).loss"),
        Frame(file="torch/nn/functional.py", line=3693, function=function, library="torch"),
    )
    record = ExceptionRecord(type="RuntimeError", message="result type Float can't be cast to Long", frames=frames)
    incident = replace(failed(), exceptions=(record,))
    return list(find_codemod("float_labels")(Context(program=write(folder, {"train.py": text}), incident=incident)))


@pytest.mark.parametrize(("labels", "wanted"), MADE.values(), ids=MADE)
def test_the_labels_are_made_floats(tmp_path: pathlib.Path, labels: str, wanted: str) -> None:
    """The token ids stay whole numbers; a second time nothing is left to do."""
    text = TEXT.replace("LABELS", labels)
    (proposal,) = found(text, tmp_path)
    after = splice(text, proposal.edits)
    assert changed_lines(text, after) == [wanted]
    assert not found(after, tmp_path)


@pytest.mark.parametrize("labels", RIGHT)
def test_floats_and_what_is_not_known_stay(tmp_path: pathlib.Path, labels: str) -> None:
    """Nothing is cast twice, and nothing of which the dtype does not show."""
    assert not found(TEXT.replace("LABELS", labels), tmp_path)


def test_another_loss_is_left_alone(tmp_path: pathlib.Path) -> None:
    """Class indices are whole numbers; a loss of the program's own gets its cast where it is called."""
    text = TEXT.replace("LABELS", MADE["no dtype"][0])
    assert not found(text, tmp_path, "cross_entropy")
    assert not found(text + "criterion = torch.nn.BCEWithLogitsLoss()\n", tmp_path)
