"""Lightning 1's hooks at the end of an epoch become those of Lightning 2, with outputs that the module keeps itself."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import rewritten

MESSAGE = "Support for `training_epoch_end` has been removed in v2.0.0. `M` implements this method."
SOURCE = """import lightning as L
import torch
from torch import nn

class M(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 2)

    def training_step(self, batch, index):
        loss = self.net(batch).square().mean()
        return TRAINING

    def training_epoch_end(self, outputs):
        \"\"\"The mean of the epoch.\"\"\"
        self.means = torch.stack([READ for one in outputs]).mean()

    def validation_step(self, batch, index):
        return {"loss": self.net(batch).square().mean(), "size": len(batch)}

    def validation_epoch_end(self, outputs):
        self.sizes = [one["size"] for one in outputs]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
"""
FIT = """
torch.manual_seed(0)
data = torch.randn(12, 3)
model = M()
options = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
L.Trainer(max_epochs=2, accelerator="cpu", **options).fit(
    model, torch.utils.data.DataLoader(data, 4), torch.utils.data.DataLoader(data, 6)
)
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("returned", "read", "kept"),
    [
        ('{"loss": loss}', 'one["loss"]', 'self.training_outputs.append({"loss": loss.detach()})'),
        ("loss", "one", "self.training_outputs.append(loss.detach())"),
    ],
    ids=["a dictionary", "a loss"],
)
def test_both_hooks_are_renamed(tmp_path: pathlib.Path, returned: str, read: str, kept: str) -> None:
    """The program runs with the installed Lightning; each list holds one epoch."""
    pytest.importorskip("lightning")
    source = SOURCE.replace("TRAINING", returned).replace("READ", read)
    with pytest.raises(NotImplementedError, match="has been removed in v2"):
        exec(compile(source + FIT, "before", "exec"), {})  # noqa: S102 - the program of the test
    after = rewritten(tmp_path, "epoch_end_hook", source, message=MESSAGE)
    assert kept in after
    assert "_epoch_end(self, outputs)" not in after
    space: dict = {}
    exec(compile(after + FIT, "after", "exec"), space)  # noqa: S102
    assert not space["model"].means.requires_grad
    assert space["model"].sizes == [6, 6]
    assert rewritten(tmp_path, "epoch_end_hook", after, message=MESSAGE) == after


@pytest.mark.parametrize(
    ("old", "new"),
    [("        return TRAINING", "        return self.logged(loss)"), ("    def __init__", "    def build")],
    ids=["what is returned is not known", "no constructor"],
)
def test_another_form_stays(tmp_path: pathlib.Path, old: str, new: str) -> None:
    """Where the list could not be made or filled."""
    source = SOURCE.replace(old, new).replace("TRAINING", "loss").replace("READ", "one")
    assert rewritten(tmp_path, "epoch_end_hook", source, message=MESSAGE) == source
