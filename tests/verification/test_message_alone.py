"""A run that prints only the message of its exception is still explained from its script."""

from __future__ import annotations

import pathlib

from explainer.catalog.bundle import load_catalog
from explainer.ingest.text import read_text
from explainer.run import Job, explain_run

SCRIPT = """from transformers import AutoModelForSequenceClassification, Trainer

model = AutoModelForSequenceClassification.from_pretrained("x")


def prepare(rows):
    return rows.rename_column("urgent", "target")


Trainer(model=model, train_dataset=prepare(load())).train()
"""
SAID = (
    "run failed with ValueError: The model did not return a loss from the inputs, only the following keys: logits. "
    "For reference, the inputs it received are input_ids,attention_mask.\n"
)


def test_the_script_of_the_command_is_read(tmp_path: pathlib.Path) -> None:
    """No frame names a file: the command does, and the guilty line is found in it."""
    (tmp_path / "train.py").write_text(SCRIPT)
    job = Job(command=("python", "train.py"), root=str(tmp_path), catalog=load_catalog())
    report = explain_run(list(read_text(SAID)), [], job)
    assert report is not None
    finding = report.findings[0]
    assert (finding.cause, finding.culprits[0].line) == ("trainer/no-loss-returned", 7)
    assert '+    return rows.rename_column("urgent", "labels")' in (finding.fixes[0].patch or "")


def test_a_command_without_a_script(tmp_path: pathlib.Path) -> None:
    """A module, or a script that is not there, is no reason to fail."""
    job = Job(command=("python", "-m", "gone.py"), root=str(tmp_path), catalog=load_catalog())
    report = explain_run(list(read_text(SAID)), [], job)
    assert report is not None
    assert report.findings[0].cause == "trainer/no-loss-returned"
