"""A schedule of Lightning counts the trainer's steps."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "`train_dataloader` must be implemented to be used with the Lightning Trainer"
SOURCE = """import lightning as L
import torch


class Net(L.LightningModule):
    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), 0.1)
        STEPS
        return [opt], [torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=steps)]
"""
WRONG = {
    "all": (
        "steps = len(self.train_dataloader()) * self.trainer.max_epochs",
        "steps = self.trainer.estimated_stepping_batches",
    ),
    "an epoch": (
        "steps = len(self.train_dataloader())",
        "steps = self.trainer.estimated_stepping_batches // self.trainer.max_epochs",
    ),
    "some epochs": (
        "steps = 3 * len(self.train_dataloader())",
        "steps = 3 * (self.trainer.estimated_stepping_batches // self.trainer.max_epochs)",
    ),
}


@pytest.mark.parametrize(("steps", "wanted"), WRONG.values(), ids=WRONG)
def test_the_trainer_is_asked(steps: str, wanted: str, tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace("STEPS", steps)
    assert changed_lines(source, rewritten(tmp_path, "steps_of_trainer", source, "steps = ", message=MESSAGE)) == [
        wanted
    ]


def test_other_loaders_stay(tmp_path: pathlib.Path) -> None:
    for steps in ("steps = len(self.val_dataloader())", "steps = len(self.loader)"):
        source = SOURCE.replace("STEPS", steps)
        assert rewritten(tmp_path, "steps_of_trainer", source, "steps = ", message=MESSAGE) == source
