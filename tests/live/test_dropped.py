"""A column that the Trainer drops and that the program's loss reads with a default: no error, and another loss than was meant."""

from __future__ import annotations

import pathlib

import pytest

from explainer.live.dropped import keys_read
from tests.gate import some_at_gate
from tests.live.running import run_on_transformers

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

PROGRAM = """import tempfile
import torch
from datasets import Dataset
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x, labels=None):
        return self.layer(x).squeeze(-1)


class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **keywords):
        READ
        labels = inputs.pop("labels")
        losses = (model(**inputs) - labels).square()
        return losses.mean() if weight is None else (weight * losses).mean()


rows = Dataset.from_list([{"x": [float(i), 1.0], "labels": 1.0, "weight": 0.5} for i in range(8)])
with tempfile.TemporaryDirectory() as out:
    args = TrainingArguments(output_dir=out, max_steps=2, report_to="none", use_cpu=True, disable_tqdm=True, save_strategy="no"OPTION)
    Weighted(model=Net(), args=args, train_dataset=rows).train()
"""
POP = 'weight = inputs.pop("weight", None)'


def program(read: str = POP, option: str = "") -> str:
    return PROGRAM.replace("READ", read).replace("OPTION", option)


SEEN = {"popped": program(), "asked for": program('weight = inputs.get("weight")')}
QUIET = {
    "kept": program(option=", remove_unused_columns=False"),
    "thrown away": program('inputs.pop("weight", None)\n        weight = None'),
    "never read": program("weight = None"),
}


@pytest.mark.parametrize("source", some_at_gate(SEEN, ["popped"]))
def test_it_is_seen(tmp_path: pathlib.Path, source: str) -> None:
    """The run ends well; the column is told, with the line that reads it."""
    pytest.importorskip("transformers")
    pytest.importorskip("datasets")
    (tmp_path / "train.py").write_text(source)
    done, _ = run_on_transformers(tmp_path, "train.py")
    assert (done.status, done.report.findings[0].cause) == (0, "trainer/columns-removed")
    (one,) = done.processes[0].dropped
    line = next(at for at, text in enumerate(source.splitlines(), 1) if '"weight"' in text)
    assert (one.column, one.model, pathlib.Path(one.file).name, one.line) == ("weight", "Net", "train.py", line)


@pytest.mark.parametrize("source", some_at_gate(QUIET, ["thrown away"]))
def test_what_nobody_misses_is_not(tmp_path: pathlib.Path, source: str) -> None:
    """Columns that arrive, and those that the loss only takes out of the way."""
    pytest.importorskip("transformers")
    pytest.importorskip("datasets")
    (tmp_path / "train.py").write_text(source)
    done, _ = run_on_transformers(tmp_path, "train.py")
    assert (done.status, done.report, done.processes[0].dropped) == (0, None, ())


def reads(self: object, inputs: dict) -> tuple:
    first = inputs.pop("first", None)
    inputs.pop("second", None)
    if inputs.get("third") is not None:
        return first, dict(name="fourth")
    return first, inputs["fifth"]


def test_the_keys_that_a_function_reads_and_keeps() -> None:
    """By `.pop` with a use and `.get`; a subscript would raise by itself, and a string is no key."""
    names = {"first", "second", "third", "fourth", "fifth"}
    begins = reads.__code__.co_firstlineno
    assert list(keys_read(reads.__code__, names)) == [("first", begins + 1), ("third", begins + 3)]
