"""An optimizer of a Lightning module that is toggled is taken back behind its step."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from tests.fix.rewriting import diff_lines, rewritten
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
LEFT = {
    "taken back": SOURCE.replace("opt_g.step()\n", "opt_g.step()\n        self.untoggle_optimizer(opt_g)\n"),
    "no step of it": SOURCE.replace("        opt_d.step()\n", ""),
    "a step elsewhere": SOURCE.replace("        opt_d.step()\n", "        if batch_idx:\n            opt_d.step()\n"),
    "no module of Lightning": SOURCE.replace("L.LightningModule", "nn.Module"),
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


@pytest.mark.slow
def test_a_module_that_lightning_left_frozen(tmp_path: pathlib.Path) -> None:
    """The live module says that it is toggled still: it was not its author who froze it."""
    pytest.importorskip("lightning")
    (tmp_path / "train.py").write_text(SOURCE)
    told = json.loads(
        gradfix(tmp_path, "run", "--fix", "--no-probe", "--format", "json", "--", sys.executable, "train.py").stdout
    )
    first = told["report"]["findings"][0]
    assert (told["status"], first["cause"]) == ("verified", "trainer/manual-optimization-misuse")
