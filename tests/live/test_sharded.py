"""An optimizer from before `fully_shard` owns tensors that nothing uses: seen without a word to other ranks."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from explainer.model.incident import Incident
from explainer.model.verification import Unowned
from explainer.verification.unowned import SHARDED, said_of, with_unowned
from tests.conftest import PATH

pytestmark = pytest.mark.torch
pytest.importorskip("torch.distributed.fsdp")

# In a process of its own: optimizers that other tests left behind would be looked at too.
STEPS = """
import json
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from explainer.live.unowned import Unowned

dist.init_process_group("gloo", init_method="file://MEETING", rank=0, world_size=1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
looking = Unowned(torch)
FIRST
SECOND
for step in range(4):
    model(torch.randn(8, 4)).square().mean().backward()
    looking.look(step)
    optimizer.step()
dist.destroy_process_group()
print(json.dumps(looking.at_the_end([optimizer])))
"""
SHARD, MAKE = "fully_shard(model)", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"


def seen(folder: pathlib.Path, first: str, second: str) -> list[dict]:
    """What is told of a few steps of a sharded model, once its group is gone."""
    code = STEPS.replace("MEETING", str(folder / "meeting")).replace("FIRST", first).replace("SECOND", second)
    environment = {**os.environ, "PYTHONPATH": PATH}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return json.loads(ended.stdout)


def test_an_optimizer_from_before(tmp_path: pathlib.Path) -> None:
    """All parameters are told, as shards; to read their sums takes no other rank."""
    (told,) = seen(tmp_path, MAKE, SHARD)
    assert (told["count"], told["is_sharded"]) == (4, True)
    unowned = Unowned(model="Net", count=4, names=tuple(told["names"]), is_sharded=True)
    assert with_unowned(Incident(), [unowned]).fact(SHARDED) is not None
    assert said_of(unowned).endswith("and 1 more; they are shards")


@pytest.mark.slow
def test_an_optimizer_of_the_shards(tmp_path: pathlib.Path) -> None:
    """Nothing is told."""
    assert seen(tmp_path, SHARD, MAKE) == []
