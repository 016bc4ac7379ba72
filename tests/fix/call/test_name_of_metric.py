"""A monitor gets the name of the metric that is logged."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, rewritten, write


@pytest.mark.parametrize(
    ("asked", "there", "wanted"),
    [
        ("val_loss", "`train_loss`, `valid_loss`", "valid_loss"),
        ("val/acc", "['train/acc', 'val/loss', 'val/accuracy']", "val/accuracy"),
        ("val_f1", "['val_loss', 'val_f1_score']", "val_f1_score"),
        ("valLoss", "['val_loss', 'epoch']", "val_loss"),
        # Another metric, none, or two that may be meant.
        ("val_loss", "['train_loss', 'train_acc']", None),
        ("val_loss", "['valid_loss', 'validation_loss']", None),
        ("val_f1_macro", "['val_f1_micro']", None),
    ],
)
def test_lightning(tmp_path: pathlib.Path, asked: str, there: str, wanted: str | None) -> None:
    source = f'stop = EarlyStopping(monitor="{asked}", mode="min")\ntrainer.fit(model)\n'
    fields = {"metric": asked, "available": there}
    after = rewritten(tmp_path, "name_of_metric", source, "trainer.fit", fields=fields)
    assert changed_lines(source, after) == ([f'stop = EarlyStopping(monitor="{wanted}", mode="min")'] if wanted else [])


def test_prefix_of_a_trainer(tmp_path: pathlib.Path) -> None:
    source = 'args = TrainingArguments("out", metric_for_best_model="acc")\nTrainer(args=args).train()\n'
    fields = {"metric": "eval_acc", "available": "['eval_loss', 'eval_accuracy', 'epoch']"}
    after = rewritten(tmp_path, "name_of_metric", source, ".train()", fields=fields)
    assert changed_lines(source, after) == ['args = TrainingArguments("out", metric_for_best_model="accuracy")']


def test_a_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.yaml").write_text("lr: 0.1\nstop:\n  monitor: val_loss\n")
    source = 'cfg = yaml.safe_load(open("train.yaml"))\nstop = EarlyStopping(**cfg["stop"])\n'
    program = write(tmp_path, {"train.py": source})
    found = best("name_of_metric", program, fields={"metric": "val_loss", "available": "['valid_loss']"})
    assert found is not None
    assert splice((tmp_path / "train.yaml").read_text(), found.edits) == "lr: 0.1\nstop:\n  monitor: valid_loss\n"
