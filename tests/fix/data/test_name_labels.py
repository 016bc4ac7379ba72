"""The Trainer is told which arguments of a model's forward are labels, where none is called so."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = (
    "The `metric_for_best_model` training argument is set to 'eval_loss', which is not found in the evaluation metrics."
)
PROGRAM = """from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def forward(self, x, mask=None, NAME=None, grade=None):
        out = self.head(x)
        loss = None
        if NAME is not None:
            loss = self.loss(out, NAME)
            if grade is not None:
                loss = loss + self.more(out, grade)
        return {"loss": loss, "logits": out}


arguments = TrainingArguments("out", load_best_model_at_end=True)
Trainer(model=Net(), args=arguments).train()
"""


def test_they_are_named(tmp_path: pathlib.Path) -> None:
    """What the loss asks for, and not what the network can do without."""
    source = PROGRAM.replace("NAME", "defect")
    after = rewritten(tmp_path, "name_labels", source, message=MESSAGE)
    assert changed_lines(source, after) == [
        'arguments = TrainingArguments("out", load_best_model_at_end=True, label_names=["defect", "grade"])'
    ]
    assert rewritten(tmp_path, "name_labels", after, message=MESSAGE) == after
    assert rewritten(tmp_path, "name_labels", source, message="it failed") == source


def test_beside_options_of_a_file(tmp_path: pathlib.Path) -> None:
    """Unless the program names labels somewhere."""
    source = PROGRAM.replace("NAME", "defect").replace("load_best_model_at_end=True", "**options")
    after = rewritten(tmp_path, "name_labels", source, message=MESSAGE)
    assert changed_lines(source, after) == [
        'arguments = TrainingArguments("out", **options, label_names=["defect", "grade"])'
    ]
    named = source.replace("arguments =", 'options["label_names"] = ["x"]\narguments =')
    assert rewritten(tmp_path, "name_labels", named, message=MESSAGE) == named


@pytest.mark.parametrize("name", ["labels", "start_label"])
def test_labels_that_are_called_so(name: str, tmp_path: pathlib.Path) -> None:
    source = PROGRAM.replace("NAME", name)
    assert rewritten(tmp_path, "name_labels", source, message=MESSAGE) == source


NAMED = """from transformers import BertForSequenceClassification, Trainer, TrainingArguments

arguments = TrainingArguments("out", label_names=["NAME"], load_best_model_at_end=True)
Trainer(model=BertForSequenceClassification.from_pretrained("x"), args=arguments).train()
"""


@pytest.mark.parametrize("name", ["label", "label_ids"])
def test_the_name_of_the_column(name: str, tmp_path: pathlib.Path) -> None:
    """The collator calls it `labels`, and a model of transformers takes that."""
    source = NAMED.replace("NAME", name)
    assert rewritten(tmp_path, "name_labels", source, message=MESSAGE) == NAMED.replace("NAME", "labels")
    assert rewritten(tmp_path, "name_labels", source, message="it failed") == source


def test_other_names_of_labels(tmp_path: pathlib.Path) -> None:
    """What the batch calls so, what a forward of the program's takes, and a name that says nothing of it."""
    own = PROGRAM.replace("NAME", "label").replace('"out"', '"out", label_names=["label"]')
    for source in (NAMED.replace("NAME", "labels"), NAMED.replace("NAME", "start_positions"), own):
        assert rewritten(tmp_path, "name_labels", source, message=MESSAGE) == source
