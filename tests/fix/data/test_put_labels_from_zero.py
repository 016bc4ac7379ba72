"""Labels that count from 1, where a library's model computes the loss."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

FAILS = "Trainer(model=model, train_dataset=data).train()\n"
SEEN = {"facts": {"live_refused_index": "5 of 5, from 1"}, "fields": {"target": "5"}}
CURED = {
    "a row": ('def encode(row):\n    return {"labels": row["stars"]}\n', 'return {"labels": row["stars"] - 1}'),
    "an item": (
        'class D:\n    def __getitem__(self, i):\n        return {"x": self.x[i], "labels": torch.tensor(self.y[i])}\n',
        'return {"x": self.x[i], "labels": torch.tensor(self.y[i]) - 1}',
    ),
    "a list": (
        'y = [int(row["stars"]) for row in rows]\ndata = Dataset.from_dict({"x": x, "label": y})\n',
        'y = [int(row["stars"]) - 1 for row in rows]',
    ),
    "an array's": ('data = {"x": x, "label": table["stars"].values.tolist()}\n', 'data = {"x": x, "label": (table["stars"].values - 1).tolist()}'),
    "written": ('def encode(batch):\n    batch["labels"] = batch["stars"]\n', 'batch["labels"] = batch["stars"] - 1'),
    "a sum": ('def encode(row):\n    return dict(labels=row["a"] if row["a"] else row["b"])\n', None),
}  # fmt: skip
LEFT = {
    "two places": '{"labels": a["stars"]}\n{"labels": b["grade"]}\n',
    "handed on": 'def collate(rows):\n    return {"labels": [one["label"] for one in rows]}\n',
    "from 0": 'y = torch.randint(0, 6, (9,))\nitem = {"labels": y[3]}\n',
    "a table of codes": 'CODES = {"a": 0, "b": 5}\nitem = {"labels": CODES[name]}\n',
}


@pytest.mark.parametrize(("source", "wanted"), CURED.values(), ids=CURED)
def test_they_are_put_less_one(tmp_path: pathlib.Path, source: str, wanted: str | None) -> None:
    """At the one place that puts them under a label's key."""
    source += FAILS
    after = rewritten(tmp_path, "put_labels_from_zero", source, "Trainer(", **SEEN)
    assert changed_lines(source, after) == ([wanted] if wanted else [])


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_others_stay(tmp_path: pathlib.Path, source: str) -> None:
    """Which of two it is, is not known; a collator hands on; what begins with 0 lacks a class."""
    source += FAILS
    assert rewritten(tmp_path, "put_labels_from_zero", source, "Trainer(", **SEEN) == source


@pytest.mark.parametrize("seen", ["5 of 5, from 0", "6 of 5, from 1", "5 of 5, from 2"])
def test_other_labels_stay(tmp_path: pathlib.Path, seen: str) -> None:
    """Where there is a 0 too, the highest is beyond the classes, or the lowest is not seen."""
    source = CURED["a row"][0] + FAILS
    given = {"facts": {"live_refused_index": seen}, "fields": {"target": seen[0]}}
    assert rewritten(tmp_path, "put_labels_from_zero", source, "Trainer(", **given) == source


def test_a_loss_of_the_program(tmp_path: pathlib.Path) -> None:
    """Its call is changed, by another edit."""
    source = CURED["a row"][0] + 'loss = torch.nn.functional.cross_entropy(model(x), batch["labels"])\n'
    assert (
        rewritten(tmp_path, "put_labels_from_zero", "import torch\n" + source, "loss =", **SEEN)
        == "import torch\n" + source
    )
