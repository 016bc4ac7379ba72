"""Gradients that DDP reduces in float16 and that come back as nothing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from explainer.live.narrow_reduction import NarrowReductions  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch):
    """Makes one that watches, in a group of this process alone."""
    monkeypatch.setattr(DistributedDataParallel, "register_comm_hook", DistributedDataParallel.register_comm_hook)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

    def watched(*, is_scaled: bool = False) -> NarrowReductions:
        found = NarrowReductions(torch, lambda: is_scaled)
        found.watch()
        return found

    yield watched
    dist.destroy_process_group()


def train(reductions: NarrowReductions, hook, scale: float, steps: int = 4) -> list[dict]:
    """What is told of a layer whose loss is so large."""
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    model.register_comm_hook(None, hook)
    for _ in range(steps):
        model.zero_grad()
        (model(torch.randn(8, 4)).pow(2).mean() * scale).backward()
        reductions.before_step()
    return reductions.at_the_end()


@pytest.mark.parametrize("scale", [1e-7, 1e-12], ids=["a few steps of float16", "all zero"])
def test_they_are_told(watching, scale: float) -> None:
    """With the line that gave the hook, and the largest gradient that came back."""
    (one,) = train(watching(), default_hooks.fp16_compress_hook, scale)
    assert one["largest"] < 1e-6
    assert (one["hook"], one["function"]) == ("fp16_compress_hook", "train")
    assert one["file"] == __file__


@pytest.mark.parametrize(
    ("hook", "scale", "is_scaled"),
    [
        (default_hooks.fp16_compress_hook, 1.0, False),
        (default_hooks.fp16_compress_hook, 1e-4, False),
        (default_hooks.allreduce_hook, 1e-12, False),
        (default_hooks.fp16_compress_hook, 1e-12, True),
    ],
    ids=["usual", "small", "another hook", "under a scaler"],
)
def test_others_are_left_alone(watching, hook, scale: float, is_scaled: bool) -> None:  # noqa: FBT001
    """What float16 holds, also with fewer digits, what is reduced as it is, and what a scaler makes larger for the way."""
    assert train(watching(is_scaled=is_scaled), hook, scale) == []
