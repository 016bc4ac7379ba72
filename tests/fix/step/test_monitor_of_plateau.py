"""A scheduler that waits for a plateau is told which metric to watch."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SAID = "`configure_optimizers` must include a monitor when a `ReduceLROnPlateau` scheduler is used."
SOURCE = """class Lit(L.LightningModule):
    def training_step(self, batch, index):
        LOGS
    def configure_optimizers(self):
        opt = Adam(self.parameters())
        return RETURNS
trainer.fit(Lit())
"""


@pytest.mark.parametrize(
    ("logs", "returns", "wanted"),
    [
        ('self.log("train_loss", a); self.log("val_loss", b)', '{"optimizer": opt, "lr_scheduler": Plateau(opt)}', '{"optimizer": opt, "lr_scheduler": Plateau(opt), "monitor": "val_loss"}'),
        ('self.log("loss", a); self.log("acc", b)', '{"optimizer": opt, "lr_scheduler": {"scheduler": Plateau(opt)}}', '{"optimizer": opt, "lr_scheduler": {"scheduler": Plateau(opt), "monitor": "loss"}}'),
        ('self.log("val_loss", a); self.log("val_aux_loss", b)', '{"optimizer": opt, "lr_scheduler": Plateau(opt)}', None),
        ('self.log("acc", b)', '{"optimizer": opt, "lr_scheduler": Plateau(opt)}', None),
        ('self.log("val_loss", b)', '{"optimizer": opt, "lr_scheduler": Plateau(opt), "monitor": "x"}', None),
    ],
)  # fmt: skip
def test_the_metric_to_watch(tmp_path: pathlib.Path, logs: str, returns: str, wanted: str | None) -> None:
    source = SOURCE.replace("LOGS", logs).replace("RETURNS", returns)
    after = rewritten(tmp_path, "monitor_of_plateau", source, "trainer.fit", message=SAID)
    assert changed_lines(source, after) == ([f"return {wanted}"] if wanted else [])
