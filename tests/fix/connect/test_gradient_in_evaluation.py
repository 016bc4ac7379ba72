"""A gradient in an evaluation step of Lightning: the trainer leaves inference mode, and the step switches grad mode on."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import lightning as L
import torch


class Heads(L.LightningModule):
    def residual(self, x):
        x = x.clone().requires_grad_()
        return torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]

    def training_step(self, batch, index):
        return self.residual(batch).square().mean()

    def validation_step(self, batch, index):
        loss = self.residual(batch).square().mean()
        self.log("val", loss)


trainer = L.Trainer(max_epochs=1)
"""
AT = "loss = self.residual"
TRAINER = "trainer = L.Trainer(max_epochs=1, inference_mode=False)"
WRONG = {
    "a step without": (SOURCE, ["with torch.enable_grad():", TRAINER]),
    "a step that switches it on": (
        SOURCE.replace(f"        {AT}(batch)", f"        with torch.enable_grad():\n            {AT}(batch)"),
        [TRAINER],
    ),
    "options that are seen": (
        SOURCE.replace("max_epochs=1", "**options").replace("trainer =", "options = dict(max_epochs=1)\ntrainer ="),
        ["with torch.enable_grad():", "options = dict(max_epochs=1, inference_mode=False)"],
    ),
}
RIGHT = {
    "a trainer that is told": SOURCE.replace("max_epochs=1", "max_epochs=1, inference_mode=False"),
    "options that say so": SOURCE.replace("max_epochs=1", "**options").replace(
        "trainer =", 'options = {"inference_mode": False}\ntrainer ='
    ),
    "options that are not seen": SOURCE.replace("max_epochs=1", "**options"),
    "no trainer of Lightning": SOURCE.replace("import lightning as L", "import mine as L"),
    "another method": SOURCE.replace("def validation_step", "def score"),
}


@pytest.mark.parametrize(("source", "lines"), WRONG.values(), ids=WRONG)
def test_an_evaluation_that_differentiates(source: str, lines: list[str], tmp_path) -> None:
    """The trainer gets the argument; the statement that was running a block, unless it has one."""
    after = rewritten(tmp_path, "gradient_in_evaluation", source, AT)
    assert [one for one in changed_lines(source, after) if not one.startswith("loss =")] == lines


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_is_not_of_a_trainer_stays(source: str, tmp_path) -> None:
    """Nothing is written where the trainer is told already, cannot be read, or is another."""
    assert rewritten(tmp_path, "gradient_in_evaluation", source, AT) == source
