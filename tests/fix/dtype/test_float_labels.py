"""Labels of several kinds at once are floats where a library's own loss takes them as probabilities."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame
from tests.fix.rewriting import changed_lines, failed, write

TEXT = """import numpy as np
import torch
import torch.nn.functional as F
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
    "joined": ('batch["labels"] = torch.stack([row["tags"] for row in rows])', 'batch["labels"] = torch.stack([row["tags"] for row in rows]).float()'),
    "one hot": ('batch["labels"] = F.one_hot(rows, 5).sum(0)', 'batch["labels"] = F.one_hot(rows, 5).sum(0).float()'),
    "a word": ('batch["labels"] = rows.tags.to(torch.int64)', 'batch["labels"] = rows.tags.to(torch.float)'),
    "an array": ('batch["labels"] = (rows.tags > 0).astype(int).tolist()', 'batch["labels"] = (rows.tags > 0).astype("float32").tolist()'),
    "an array of a list": ('batch["labels"] = np.array([[int(one) for one in row] for row in rows])', 'batch["labels"] = np.array([[float(one) for one in row] for row in rows])'),
    "by a keyword": ('batch = dict(labels=[[int(one) for one in row] for row in rows])', 'batch = dict(labels=[[float(one) for one in row] for row in rows])'),
    "counted up": ('hot = [0] * 5; hot[2] = 1; batch["labels"] = hot', 'hot = [0.0] * 5; hot[2] = 1; batch["labels"] = hot'),
}  # fmt: skip
RIGHT = [
    'batch["labels"] = torch.tensor(rows, dtype=torch.float32)',
    'batch["labels"] = rows.float()',
    'batch["labels"] = rows',
    'batch["labels"] = [float(one) for one in rows]',
    'batch["labels"] = [one.tag for one in rows]',
    'batch["labels"] = int(rows[0].tag)',
    'batch["labels"] = np.zeros(5); batch["labels"][2] = 1',
    'batch["labels"] = np.zeros((len(rows), 5), dtype=np.float32)',
    'batch["labels"] = F.one_hot(rows, 5).sum(0).float()',
    'batch["labels"] = rows.tags.astype("float64").tolist()',
    'hot = []; hot.append(1); hot.append(rows.share); batch["labels"] = hot',
    'hot, ids = split(rows); batch["labels"] = hot',
    'hot = [int(one) for one in rows]; batch["labels_length"] = hot',
]
# What makes the labels, in a file of its own, and its line that is mended.
HELPERS = {
    "a comprehension": ("def hot(tags):\n    return [int(one in tags) for one in TAGS]\n", "return [float(one in tags) for one in TAGS]"),
    "flags": ("def hot(tags):\n    return [one in tags for one in TAGS]\n", "return [float(one in tags) for one in TAGS]"),
    "a list that is filled": ("def hot(tags):\n    row = []\n    for one in TAGS:\n        row.append(1 if one in tags else 0)\n    return row\n",
                              "row.append(1.0 if one in tags else 0.0)"),
    "set by place": ("def hot(tags):\n    row = [0] * len(TAGS)\n    for one in tags:\n        row[TAGS[one]] = 1\n    return row\n", "row = [0.0] * len(TAGS)"),
    "a tensor": ("def hot(tags):\n    row = torch.zeros(len(TAGS), dtype=torch.long)\n    row[tags] = 1\n    return row\n",
                 "row = torch.zeros(len(TAGS), dtype=torch.float)"),
    "an array": ("def hot(tags):\n    row = np.zeros(len(TAGS), int)\n    row[tags] = 1\n    return row.tolist()\n", "row = np.zeros(len(TAGS), np.float32)"),
    "a number for each": ("def hot(tags):\n    return [has(one, tags) for one in TAGS]\ndef has(one, tags):\n    return int(one in tags)\n",
                          "return float(one in tags)"),
    "an early return": ("def hot(tags):\n    if not tags:\n        return [0] * 5\n    return [int(one in tags) for one in TAGS]\n",
                        "return [0.0] * 5|return [float(one in tags) for one in TAGS]"),
}  # fmt: skip
# Nothing of these is known to be made for the labels alone.
UNKNOWN = {
    "the index of a class": "def hot(tags):\n    return int(tags[0])\n",
    "floats in one branch": "def hot(tags):\n    if tags is None:\n        return soft\n    return [int(one in tags) for one in TAGS]\n",
    "used elsewhere too": "def hot(tags):\n    return [int(one in tags) for one in TAGS]\nwhere = names[hot(first)[0]]\n",
    "handed on": "def hot(tags):\n    return [int(one in tags) for one in TAGS]\nrows = map(hot, rows)\n",
}


def found(text: str, folder: pathlib.Path, function: str = "binary_cross_entropy_with_logits", more: dict = {}) -> list:  # noqa: B006
    frames = (
        Frame(file="train.py", line=1, function="main", code="loss = model(**batch).loss"),
        Frame(file="torch/nn/functional.py", line=3693, function=function, library="torch"),
    )
    record = ExceptionRecord(type="RuntimeError", message="result type Float can't be cast to Long", frames=frames)
    incident = replace(failed(), exceptions=(record,))
    return list(
        find_codemod("float_labels")(Context(program=write(folder, {"train.py": text} | more), incident=incident))
    )


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


@pytest.mark.parametrize(("helper", "wanted"), HELPERS.values(), ids=HELPERS)
@pytest.mark.parametrize("labels", ["hot(row)", "[hot(one) for one in rows]"])
def test_the_function_that_makes_them(tmp_path: pathlib.Path, helper: str, wanted: str, labels: str) -> None:
    """It stands in a file of its own; its line is the culprit."""
    helper = "import numpy as np\nimport torch\n" + helper
    text = "from tags import hot\n" + TEXT.replace("LABELS", f'batch["labels"] = {labels}')
    (proposal,) = found(text, tmp_path, more={"tags.py": helper})
    after = splice(helper, proposal.edits)
    assert changed_lines(helper, after) == wanted.split("|")
    assert proposal.culprit.file.endswith("tags.py")
    assert not found(text, tmp_path, more={"tags.py": after})


@pytest.mark.parametrize("helper", UNKNOWN.values(), ids=UNKNOWN)
def test_functions_that_stay(tmp_path: pathlib.Path, helper: str) -> None:
    """One that may return something else, or that makes more than the labels."""
    text = helper + TEXT.replace("LABELS", 'batch["labels"] = hot(rows)')
    assert not found(text, tmp_path)


def test_another_loss_is_left_alone(tmp_path: pathlib.Path) -> None:
    """Class indices are whole numbers; a loss of the program's own gets its cast where it is called."""
    text = TEXT.replace("LABELS", MADE["no dtype"][0])
    assert not found(text, tmp_path, "cross_entropy")
    assert not found(text + "criterion = torch.nn.BCEWithLogitsLoss()\n", tmp_path)
