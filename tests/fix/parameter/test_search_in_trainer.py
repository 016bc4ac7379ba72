"""DistributedDataParallel searches for what a step leaves out, where a trainer wraps the model."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, write

HEADS = """import json
import lightning as L
import torch
import yaml
from torch import nn
from lightning.pytorch.strategies import DDPStrategy, FSDPStrategy
from transformers import Trainer, TrainingArguments


class Net(BASE):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.left, self.right = nn.Linear(4, 1), nn.Linear(4, 1)

    def METHOD(self, x, i):
        h = self.body(x)
        if i % 2:
            return self.left(h).mean()
        return self.right(h).mean()


"""
LIGHTNING = HEADS.replace("BASE", "L.LightningModule").replace("METHOD", "training_step")
MODULE = HEADS.replace("BASE", "nn.Module").replace("METHOD", "forward")
FIT = "trainer.fit(Net(), loader)\n"
YAML = 'cfg = yaml.safe_load(open("run.yaml"))\ntrainer = L.Trainer(**cfg["trainer"])\n'
OWN = """class Weighted(Trainer):
    pass


args = TrainingArguments("out", ddp_find_unused_parameters=False)
Weighted(args=args, model=Net(), train_dataset=rows).train()
"""

WRONG = {
    "a strategy by its name": (
        {"train.py": LIGHTNING + 'trainer = L.Trainer(strategy="ddp", devices=2)\n' + FIT},
        'trainer = L.Trainer(strategy="ddp_find_unused_parameters_true", devices=2)',
    ),
    "a strategy that forks": (
        {"train.py": LIGHTNING + "trainer = L.Trainer(strategy='ddp_notebook')\ntrainer.fit(model=Net())\n"},
        "trainer = L.Trainer(strategy='ddp_notebook_find_unused_parameters_true')",
    ),
    "a strategy that says no": (
        {"train.py": LIGHTNING + 'trainer = L.Trainer(strategy="ddp_find_unused_parameters_false")\n' + FIT},
        'trainer = L.Trainer(strategy="ddp_find_unused_parameters_true")',
    ),
    "a strategy with options": (
        {"train.py": LIGHTNING + "trainer = L.Trainer(strategy=DDPStrategy(bucket_cap_mb=5))\n" + FIT},
        "trainer = L.Trainer(strategy=DDPStrategy(bucket_cap_mb=5, find_unused_parameters=True))",
    ),
    "the strategy of several devices": (
        {"train.py": LIGHTNING + "trainer = L.Trainer(devices=4)\n" + FIT},
        'trainer = L.Trainer(devices=4, strategy="ddp_find_unused_parameters_true")',
    ),
    "a strategy in a file": (
        {"train.py": LIGHTNING + YAML + FIT, "run.yaml": "trainer:\n  strategy: ddp\n  devices: 2\n"},
        "  strategy: ddp_find_unused_parameters_true",
    ),
    "a Fabric": (
        {"train.py": MODULE + 'fabric = L.Fabric(strategy="ddp")\nmodel, opt = fabric.setup(Net(), opt)\n'},
        'fabric = L.Fabric(strategy="ddp_find_unused_parameters_true")',
    ),
    "a trainer of transformers": (
        {"train.py": MODULE + OWN},
        'args = TrainingArguments("out", ddp_find_unused_parameters=True)',
    ),
}
RIGHT = {
    "another strategy": LIGHTNING + "trainer = L.Trainer(strategy=FSDPStrategy())\n" + FIT,
    "one that searches": LIGHTNING + 'trainer = L.Trainer(strategy="ddp_find_unused_parameters_true")\n' + FIT,
    "one that searches by its option": LIGHTNING
    + "trainer = L.Trainer(strategy=DDPStrategy(find_unused_parameters=True))\n"
    + FIT,
    "options that are not known": LIGHTNING + "trainer = L.Trainer(**options())\n" + FIT,
    "a trainer that searches": MODULE + OWN.replace("False", "True"),
}


@pytest.mark.parametrize(("files", "wanted"), WRONG.values(), ids=WRONG)
def test_the_search_is_switched_on_where_the_trainer_is_told(tmp_path, files: dict[str, str], wanted: str) -> None:
    """In the strategy of Lightning or among the arguments of transformers, wherever they are written."""
    found = best("reach_every_parameter", write(tmp_path, files), incident=failed())
    assert found is not None
    (edit,) = found.edits
    text = (tmp_path / pathlib.Path(edit.file).name).read_text()
    after = splice(text, found.edits)
    assert after is not None
    assert changed_lines(text, after) == [wanted.strip()]


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_trainers_stay(tmp_path, source: str) -> None:
    """A strategy that is not DDP, or that searches already, or that cannot be followed."""
    assert best("reach_every_parameter", write(tmp_path, {"train.py": source}), incident=failed()) is None
