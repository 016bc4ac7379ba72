"""The parameters that DistributedDataParallel waits for in vain, by their names."""

from __future__ import annotations

import sys

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from explainer.live.crash import look  # noqa: E402
from explainer.verification.live_report import facts_of  # noqa: E402
from tests.live.running import needs  # noqa: E402
from tests.verification.programs import gradfix  # noqa: E402


class Heads(nn.Module):
    """Two heads, and a frozen layer before them that torch does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.main, self.extra = nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.main(self.frozen(x)), self.extra(x)


@pytest.fixture
def group(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def told(model: nn.Module, place: int, name: str = "live_unreduced") -> str | None:
    with pytest.raises((RuntimeError, IndexError)) as failed:
        for _ in range(2):
            model(torch.ones(3, 2))[place].sum().backward()
    return dict(facts_of(look(failed.value))).get(name)


@pytest.mark.usefixtures("group")
def test_the_names_of_what_got_no_gradient() -> None:
    """The numbers of the message count what requires grad, in the order of the wrapped module."""
    assert told(DistributedDataParallel(Heads()), 0) == "extra.weight extra.bias"
    assert told(DistributedDataParallel(Heads()), 1) == "main.weight main.bias"


def test_another_failure() -> None:
    """A failure that is not DDP's names nothing."""
    assert told(Heads(), 2) is None


@pytest.mark.usefixtures("group")
def test_what_was_frozen_after_it_was_wrapped() -> None:
    """DDP counts what required grad when it wrapped the module; what is frozen since is told apart."""
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)))
    model.module[0].requires_grad_(False)
    assert told(model, slice(None), "live_frozen_since") == "0.weight 0.bias"
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)))
    model.module[0].requires_grad_(False)
    assert told(model, slice(None)) == "0.weight 0.bias"
    assert told(DistributedDataParallel(Heads()), 0, "live_frozen_since") is None


LIGHTNING = """import lightning as L
import torch
from torch import nn


class Heads(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.main, self.extra = nn.Linear(2, 1), nn.Linear(2, 1)

    def training_step(self, batch, at):
        return self.main(batch[0]).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


data = torch.utils.data.TensorDataset(torch.randn(4, 2))
trainer = L.Trainer(
    accelerator="cpu", devices=1, strategy="ddp", max_epochs=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(Heads(), torch.utils.data.DataLoader(data, batch_size=2))
"""


@needs("lightning")
def test_lightning_tells_no_numbers(tmp_path) -> None:
    """Its own text takes the place of the message; the step before has left gradients with what the loss reaches."""
    (tmp_path / "train.py").write_text(LIGHTNING)
    told = gradfix(tmp_path, "run", "--", sys.executable, "train.py").stderr
    assert "the parameters that got no gradient are extra.weight extra.bias" in " ".join(told.split())
