"""An optimizer from before `fully_shard` owns tensors that nothing uses: seen without a word to other ranks."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

from explainer.live.unowned import Unowned as Looking  # noqa: E402
from explainer.model.incident import Incident  # noqa: E402
from explainer.model.verification import Unowned  # noqa: E402
from explainer.verification.unowned import SHARDED, said_of, with_unowned  # noqa: E402


@pytest.fixture
def group(tmp_path: pathlib.Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def seen(*, is_sharded_first: bool) -> list[dict]:
    """What is told of three steps of a sharded model, once its group is gone."""
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    looking = Looking(torch)
    if is_sharded_first:
        fsdp.fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if not is_sharded_first:
        fsdp.fully_shard(model)
    for step in range(4):
        model(torch.randn(8, 4)).square().mean().backward()
        looking.look(step)
        optimizer.step()
    dist.destroy_process_group()
    return looking.at_the_end([optimizer])


@pytest.mark.skipif(not dist.is_available(), reason="torch without torch.distributed")
@pytest.mark.usefixtures("group")
def test_an_optimizer_from_before() -> None:
    """All parameters are told, as shards; to read their sums takes no other rank."""
    told = next(one for one in seen(is_sharded_first=False) if one["count"] == 4)
    assert told["is_sharded"]
    unowned = Unowned(model="Net", count=4, names=tuple(told["names"]), is_sharded=True)
    incident = with_unowned(Incident(), [unowned])
    assert incident.fact(SHARDED) is not None
    assert said_of(unowned).endswith("and 1 more; they are shards")


@pytest.mark.skipif(not dist.is_available(), reason="torch without torch.distributed")
@pytest.mark.usefixtures("group")
def test_an_optimizer_of_the_shards() -> None:
    """Nothing is told."""
    assert [one for one in seen(is_sharded_first=True) if one.get("is_sharded")] == []
