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


TRAINER = """class Lit(L.LightningModule):
    def training_step(self, batch, index):
        self.log("train/loss", a)
    def validation_step(self, batch, index):
        VALIDATION
    def configure_optimizers(self):
        scheduler = ReduceLROnPlateau(opt, mode="MODE")
        return {"optimizer": opt, "lr_scheduler": scheduler}
trainer = L.Trainer(callbacks=[CALLBACKS])
trainer.fit(Lit())
"""


@pytest.mark.parametrize(
    ("validation", "mode", "callbacks", "wanted"),
    [
        ('self.log("val/mae", a)', "min", "", "val/mae"),
        ('self.log("mae", a)', "min", "", "mae"),
        ('self.log("val/mae", a); self.log("val/rmse", b)', "min", "", None),
        ('self.log("val/mae", a); self.log("val/rmse", b)', "min", 'EarlyStopping(monitor="val/rmse")', "val/rmse"),
        ('self.log("val/mae", a); self.log("val/r2", b)', "min", 'ModelCheckpoint(monitor="val/r2", mode="max")', "val/mae"),
        ('self.log_dict({"val_loss": a, "val_acc": b})', "max", "", "val_acc"),
        ('self.log_dict({"val_loss": a, "val_acc": b})', "min", "", "val_loss"),
        ('self.log("val_acc", a)', "min", "", None),
    ],
)  # fmt: skip
def test_what_validation_logs(
    tmp_path: pathlib.Path, validation: str, mode: str, callbacks: str, wanted: str | None
) -> None:
    """A loss of training is not watched where the validation logs anything; a callback says what the author goes by."""
    source = TRAINER.replace("VALIDATION", validation).replace("MODE", mode).replace("CALLBACKS", callbacks)
    after = rewritten(tmp_path, "monitor_of_plateau", source, "trainer.fit", message=SAID)
    line = f'return {{"optimizer": opt, "lr_scheduler": scheduler, "monitor": "{wanted}"}}'
    assert changed_lines(source, after) == ([line] if wanted else [])


STAGES = """class Lit(L.LightningModule):
    def shared(self, batch, stage):
        self.log(f"{stage}/loss", a)
    def training_step(self, batch, index):
        return self.shared(batch, "train")
    def validation_step(self, batch, index):
        self.shared(batch, stage="valid")
    def configure_optimizers(self):
        return {"optimizer": opt, "lr_scheduler": ReduceLROnPlateau(opt)}
trainer.fit(Lit())
"""


def test_a_name_that_is_made_of_the_stage(tmp_path: pathlib.Path) -> None:
    """Training and validation log by one method, which their steps tell what they are."""
    after = rewritten(tmp_path, "monitor_of_plateau", STAGES, "trainer.fit", message=SAID)
    assert changed_lines(STAGES, after) == [
        'return {"optimizer": opt, "lr_scheduler": ReduceLROnPlateau(opt), "monitor": "valid/loss"}'
    ]
