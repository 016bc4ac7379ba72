"""An optimizer of a Lightning module that is toggled is taken back behind its step."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests import forked
from tests.fix.rewriting import best, diff_lines, rewritten, write
from tests.verification.programs import gradfix

SOURCE = """import torch
from torch import nn
import lightning as L
class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.gen, self.disc = nn.Linear(4, 2), nn.Linear(2, 1)
    def configure_optimizers(self):
        return [torch.optim.SGD(self.gen.parameters(), 0.1), torch.optim.SGD(self.disc.parameters(), 0.1)]
    def training_step(self, batch, batch_idx):
        opt_g, opt_d = self.optimizers()
        self.toggle_optimizer(opt_g)
        opt_g.zero_grad()
        self.manual_backward(-self.disc(self.gen(torch.randn(4, 4))).mean())
        opt_g.step()
        self.toggle_optimizer(opt_d)
        opt_d.zero_grad()
        self.manual_backward(self.disc(self.gen(torch.randn(4, 4)).detach()).mean() - self.disc(batch).mean())
        opt_d.step()
if __name__ == "__main__":
    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    loader = torch.utils.data.DataLoader(torch.randn(16, 2), batch_size=4)
    L.Trainer(max_epochs=1, accelerator="cpu", **quiet).fit(GAN(), loader)
"""
BACK_G, BACK_D = ("        self.untoggle_optimizer(opt_g)\n", "        self.untoggle_optimizer(opt_d)\n")
STEP_G, STEP_D = "        opt_g.step()\n", "        opt_d.step()\n"
RIGHT = SOURCE.replace(STEP_G, STEP_G + BACK_G).replace(STEP_D, STEP_D + BACK_D)
ROUND_D = """        try:
            opt_d.zero_grad()
            if not batch_idx:
                return
            opt_d.step()
        finally:
            self.untoggle_optimizer(opt_d)
"""
LEFT = {
    "taken back": RIGHT,
    "taken back by another method": SOURCE.replace(
        "if __name__", "    def on_train_batch_end(self, *_):\n        self.untoggle_optimizer(self.opt)\nif __name__"
    ),
    "taken back in a finally": RIGHT.replace(STEP_D + BACK_D, ROUND_D),
    "taken back in both branches": RIGHT.replace(
        BACK_D,
        "        if batch_idx:\n            self.untoggle_optimizer(opt_d)\n"
        "        else:\n            self.untoggle_optimizer(opt_d)\n",
    ),
    "taken back before it leaves": RIGHT.replace(
        STEP_D, "        if not batch_idx:\n            self.untoggle_optimizer(opt_d)\n            return\n" + STEP_D
    ),
    "left behind it": RIGHT.replace(
        BACK_D, BACK_D + "        if batch_idx:\n            return\n        self.log('d', 0.0)\n"
    ),
    "left by a function in it": RIGHT.replace(
        STEP_D, "        def closure():\n            return None\n        opt_d.step(closure)\n"
    ),
    "toggled and taken back in branches of their own": RIGHT.replace(
        "        self.toggle_optimizer(opt_d)\n",
        "        if batch_idx % 2 == 0:\n            self.toggle_optimizer(opt_d)\n",
    ).replace(BACK_D, "        if batch_idx % 2 == 1:\n            self.untoggle_optimizer(opt_d)\n"),
    "no step of it": SOURCE.replace(STEP_D, ""),
    "no module of Lightning": SOURCE.replace("L.LightningModule", "nn.Module"),
    "a context": SOURCE.replace("self.toggle_optimizer(opt_g)\n", "self.toggled_optimizer(opt_g)\n").replace(
        "        self.toggle_optimizer(opt_d)\n", ""
    ),
}
TOGGLED = {
    "the first one": (
        RIGHT.replace(BACK_G, ""),
        ["+        self.untoggle_optimizer(opt_g)"],
        "self.toggle_optimizer(opt_g)",
    ),
    "the last one, in a branch": (
        RIGHT.replace(BACK_D, "").replace(
            "        opt_d.zero_grad()\n", "        if batch_idx % 2:\n            return\n        opt_d.zero_grad()\n"
        ),
        ["+            self.untoggle_optimizer(opt_d)", "+        self.untoggle_optimizer(opt_d)"],
        "self.toggle_optimizer(opt_d)",
    ),
    "one that is cleared behind its step": (
        RIGHT.replace(STEP_G + BACK_G, STEP_G + "        opt_g.zero_grad()\n"),
        ["+        self.untoggle_optimizer(opt_g)"],
        "self.toggle_optimizer(opt_g)",
    ),
    "one that another method steps": (
        RIGHT.replace(STEP_D + BACK_D, "        self.update(opt_d)\n").replace(
            "if __name__", "    def update(self, optimizer):\n        optimizer.step()\nif __name__"
        ),
        ["+        self.untoggle_optimizer(opt_d)"],
        "self.toggle_optimizer(opt_d)",
    ),
    "one that steps in a branch": (
        RIGHT.replace(STEP_D + BACK_D, "        if batch_idx % 2:\n            opt_d.step()\n"),
        ["+        self.untoggle_optimizer(opt_d)"],
        "self.toggle_optimizer(opt_d)",
    ),
    "a way out that is left early": (
        RIGHT.replace(STEP_D, "        if batch_idx % 2:\n            return\n" + STEP_D),
        ["+            self.untoggle_optimizer(opt_d)"],
        "return",
    ),
    "a round that ends early": (
        RIGHT.replace(
            STEP_G + BACK_G,
            "        for _ in range(2):\n            self.toggle_optimizer(opt_g)\n"
            "            if batch_idx: continue\n            opt_g.step()\n            self.untoggle_optimizer(opt_g)\n",
        ).replace("        self.toggle_optimizer(opt_g)\n", "", 1),
        ["-            if batch_idx: continue", "+            if batch_idx: self.untoggle_optimizer(opt_g); continue"],
        "continue",
    ),
    "taken back where it steps alone": (
        RIGHT.replace(
            STEP_D + BACK_D,
            "        if batch_idx % 2:\n            opt_d.step()\n            self.untoggle_optimizer(opt_d)\n        self.log('d', 0)\n",
        ),
        ["-            self.untoggle_optimizer(opt_d)", "+        self.untoggle_optimizer(opt_d)"],
        "self.untoggle_optimizer(opt_d)",
    ),
    "another one taken back": (
        RIGHT.replace(BACK_D, BACK_G),
        ["-        self.untoggle_optimizer(opt_g)", "+        self.untoggle_optimizer(opt_d)"],
        "self.untoggle_optimizer(opt_g)",
    ),
}


def test_it_is_taken_back_behind_each_step(tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "untoggle_optimizer", SOURCE, at="self.manual_backward(self.disc")
    assert diff_lines(SOURCE, after) == [
        "+        self.untoggle_optimizer(opt_g)",
        "+        self.untoggle_optimizer(opt_d)",
    ]
    assert rewritten(tmp_path, "untoggle_optimizer", after, at="self.manual_backward(self.disc") == after


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_others_are_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "untoggle_optimizer", source, at="self.manual_backward(self.disc") == source


@pytest.mark.parametrize(("source", "lines", "at"), TOGGLED.values(), ids=TOGGLED)
def test_each_is_taken_back_by_itself(source: str, lines: list[str], at: str, tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "untoggle_optimizer", source, at="self.manual_backward(self.disc")
    assert diff_lines(source, after) == lines
    found = best("untoggle_optimizer", write(tmp_path, {"train.py": source}))
    assert found is not None
    assert found.culprit.code is not None
    assert at in found.culprit.code
    assert rewritten(tmp_path, "untoggle_optimizer", after, at="self.manual_backward(self.disc") == after


@pytest.mark.slow
def test_a_module_that_lightning_left_frozen(tmp_path: pathlib.Path) -> None:
    """The live module says that it is toggled still: it was not its author who froze it."""
    pytest.importorskip("lightning")
    (tmp_path / "train.py").write_text(SOURCE)
    told = json.loads(
        gradfix(tmp_path, "run", "--fix", "--no-probe", "--format", "json", "--", forked.python(), "train.py").stdout
    )
    first = told["report"]["findings"][0]
    assert (told["status"], first["cause"]) == ("verified", "trainer/manual-optimization-misuse")
