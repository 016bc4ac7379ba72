"""Where the ranks get parts of the data that differ in size."""

from __future__ import annotations

import pathlib

import pytest

from explainer.source.data.shard import uneven_shards
from tests.fix.rewriting import write

HEAD = """import itertools
import math
import os
import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.utils.data import DataLoader, Sampler, Subset
from torch.utils.data.distributed import DistributedSampler

"""
TRAIN = """def train(rank, world, data):
    for batch in DataLoader({}, 8):
        model(batch).sum().backward()
"""
EVEN = {
    "a DistributedSampler": TRAIN.format("data, sampler=DistributedSampler(data)"),
    "a cut before": "def rows(order, rank, world):\n    order = order[:len(order) - len(order) % world]\n    return order[rank::world]\n",
    "an upper end": "def rows(order, rank, world):\n    return order[rank:len(order) // world * world:world]\n",
    "padded": "def rows(order, rank, world):\n    order += order[:-len(order) % world]\n    return order[rank::world]\n",
    "padded by its class": (
        "class Shards(Sampler):\n    def __init__(self, n, rank, world):\n        self.n, self.rank, self.world = n, rank, world\n"
        "        self.total = math.ceil(n / world) * world\n\n"
        "    def __iter__(self):\n        order = list(range(self.n))\n        order += order[:self.total - self.n]\n"
        "        return iter(order[self.rank::self.world])\n"
    ),
    "incomplete batches dropped": TRAIN.format("data[rank::world]").replace("8)", "8, drop_last=True)"),
    "joined": (
        "def train(rank, world, data):\n    with Join([model]):\n        for row in data[rank::world]:\n"
        "            model(row).sum().backward()\n"
    ),
    "the smallest number agreed on": (
        TRAIN.format("data[rank::world]") + "def steps(n):\n    dist.all_reduce(n, op=dist.ReduceOp.MIN)\n"
    ),
    "an evaluation": (
        "def evaluate(rank, world, data):\n    scores = [score(row) for row in data[rank::world]]\n    dist.all_gather_object(out, scores)\n"
    ),
    "a loop that meets no other rank": "def note(rank, world, data):\n    for row in data[rank::world]:\n        print(row)\n",
    "every second row": "def rows(data):\n    return data[1::2]\n",
    "workers": "def rows(data, worker, num_workers):\n    return itertools.islice(data, worker.id, None, num_workers)\n",
    "a part by its number": "def part(x, i):\n    return x.chunk(3)[i]\n",
    "a number's remainder": "def log(rank, world, i):\n    return i % world == rank\n",
}  # fmt: skip
UNEVEN = {
    "a sampler's class": (
        "class Shards(Sampler):\n    def __init__(self, n, rank, replicas):\n        self.n, self.rank, self.replicas = n, rank, replicas\n\n"
        "    def __iter__(self):\n        return iter(range(self.rank, self.n, self.replicas))\n",
        "range(self.rank",
    ),
    "rows of a loader": (TRAIN.format("data[rank::world]"), "data[rank"),
    "names of their own": (
        "def main(data):\n    me, n = dist.get_rank(), dist.get_world_size()\n    return Subset(data, list(range(me, len(data), n)))\n",
        "range(me",
    ),
    "the environment": (
        'def rows(data):\n    return data[int(os.environ["RANK"])::int(os.environ["WORLD_SIZE"])]\n', "data[int",
    ),
    "a loop that trains": (
        "def train(rank, cfg, data):\n    for i in range(rank, len(data), cfg['world']):\n        loss(data[i]).backward()\n",
        "range(rank",
    ),
    "a split": (
        "def train(rank, data):\n    batches = data.tensor_split(2)[rank]\n    for batch in batches:\n        loss(batch).backward()\n",
        "tensor_split",
    ),
    "NumPy's parts": (
        "def rows(rank, world, n):\n    parts = np.array_split(np.arange(n), world)\n    return parts[rank]\n", "parts[rank]",
    ),
    "a stream": (
        "class Lines:\n    def __iter__(self):\n        for number, line in enumerate(open('a')):\n"
        "            if number % self.world_size != self.rank:\n                continue\n            yield line\n",
        "number % self",
    ),
    "a comprehension": (
        "def files(names, rank, world_size):\n    return [n for i, n in enumerate(names) if i % world_size == rank]\n",
        "i % world_size",
    ),
    "beside a mean and a batch of one rank": (
        "def train(rank, world_size, batch_size, data):\n    mine = data[rank::world_size]\n    size = batch_size // world_size\n"
        "    for i in range(0, len(mine), size):\n        (loss(mine[i:i + size]) / world_size).backward()\n",
        "data[rank",
    ),
    "a slice of an iterator": (
        "def rows(it, rank, world_size):\n    return itertools.islice(it, rank, None, world_size)\n", "islice(it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", EVEN.values(), ids=EVEN)
def test_parts_of_one_size_are_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    """So are those that no training takes, and programs whose ranks agree on when to end."""
    assert list(uneven_shards(write(tmp_path, {"train.py": HEAD + source}))) == []


@pytest.mark.parametrize(("source", "wanted"), UNEVEN.values(), ids=UNEVEN)
def test_parts_of_unequal_size_are_found(source: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """Where the number of rows does not divide by the ranks, some get one more."""
    ((file, node),) = uneven_shards(write(tmp_path, {"train.py": HEAD + source}))
    assert wanted in file.segment(node)
