"""An optimizer that was made before its model was sharded is made behind that, with its schedule, or the model is sharded before."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Fact, Incident
from explainer.model.trace import UNOWNED, TracedLine
from tests.fix.rewriting import best, line_of, write

HEAD = """import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard
from sharding import shard


"""
SHARDING = """from torch.distributed.fsdp import fully_shard


def shard(model, world):
    for block in model.blocks:
        fully_shard(block)
    return fully_shard(model)
"""
OPTIMIZER = "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)  # here\n"
SCHEDULE = "schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)\n"
PARTS = "for block in model.blocks:\n    fully_shard(block)\n"
MENDED = {
    "in place": (OPTIMIZER + "fully_shard(model)\n", "fully_shard(model)\n" + OPTIMIZER),
    "the parts first": (OPTIMIZER + PARTS + "fully_shard(model)\n", PARTS + "fully_shard(model)\n" + OPTIMIZER),
    "wrapped": (OPTIMIZER + "model = FSDP(model)\n", "model = FSDP(model)\n" + OPTIMIZER),
    "in a helper": (OPTIMIZER + "model = shard(model, 2)\n", "model = shard(model, 2)\n" + OPTIMIZER),
    "with its schedule": (
        OPTIMIZER + SCHEDULE + "print('made')\nfully_shard(model)\n",
        "print('made')\nfully_shard(model)\n" + OPTIMIZER + SCHEDULE,
    ),
    "where it is handed on": (
        OPTIMIZER + SCHEDULE + "fit(shard(model, 2), optimizer, schedule)\n",
        "model = shard(model, 2)\n" + OPTIMIZER + SCHEDULE + "fit(model, optimizer, schedule)\n",
    ),
}
LEFT = {
    "the parts first, and the optimizer between": OPTIMIZER + PARTS + "print(optimizer)\nfully_shard(model)\n",
    "another model": OPTIMIZER + "fit(shard(teacher, 2), optimizer)\n",
    "a mesh that is made between": OPTIMIZER + "world = count()\nfit(shard(model, world), optimizer)\n",
    "sharded before": "fully_shard(model)\n" + OPTIMIZER,
}  # fmt: skip


def edited(folder: pathlib.Path, source: str, *, is_sharded: bool = True) -> str:
    source = HEAD + source
    program = write(folder, {"train.py": source, "sharding.py": SHARDING})
    seen = TracedLine(
        kind=UNOWNED, operation="Optimizer", file=str(folder / "train.py"), line=line_of(source, "# here"), function="f", says="",
        is_guess=True,
    )  # fmt: skip
    facts = (Fact(name="live_parts", value="blocks"), *([Fact(name="live_sharded", value="Net")] if is_sharded else []))
    proposal = best("optimizer_behind_layers", program, incident=Incident(traced=(seen,), facts=facts))
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return after.removeprefix(HEAD)


@pytest.mark.parametrize(("source", "wanted"), MENDED.values(), ids=MENDED)
def test_sharded_first(tmp_path: pathlib.Path, source: str, wanted: str) -> None:
    """The optimizer holds the shards then."""
    assert edited(tmp_path, source) == wanted


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_what_stands_in_the_way(tmp_path: pathlib.Path, source: str) -> None:
    """What lies between needs the one or makes the other."""
    assert edited(tmp_path, source) == source


def test_only_where_shards_were_seen(tmp_path: pathlib.Path) -> None:
    """Parameters of another kind that no optimizer owns were not replaced by shards."""
    source = OPTIMIZER + "fully_shard(model)\n"
    assert edited(tmp_path, source, is_sharded=False) == source
