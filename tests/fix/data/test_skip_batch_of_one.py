"""The batch of one sample that a program cuts itself is left out where it is cut."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from tests.fix.mending import mended, run
from tests.fix.rewriting import diff_lines, failed, line_of, rewritten, write

HEAD = """import itertools
import math
import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, Sampler, SequentialSampler
net = nn.BatchNorm1d(3)
data = torch.randn(9, 3)
size = 4
"""
BUCKETS = """class Buckets(Sampler):
    def __init__(self, lengths, size, drop_last=False):
        self.lengths, self.size, self.drop_last = lengths, size, drop_last
    def __iter__(self):
        buckets = {}
        for i, length in enumerate(self.lengths):
            bucket = buckets.setdefault(length % 2, [])
            bucket.append(i)
            if len(bucket) == self.size:
                yield list(bucket)
                bucket.clear()
        if not self.drop_last:
            for bucket in buckets.values():
                if bucket:
                    yield bucket
"""
WALKED = "for x in DataLoader(data, batch_sampler=Buckets([0, 1] * 4 + [0], 4)):\n    net(x)\n"
FILLED = """def batches(rows, size):
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield torch.stack(batch)
            batch = []
    if len(batch) > 0:
        yield torch.stack(batch)
"""
# A program, and the lines that go and come; each runs on without the batch of one.
CUT = {
    "a list that is full or left over": (
        BUCKETS + WALKED,
        ["-                if bucket:", "+                if len(bucket) > 1:"],
    ),
    "a generator of stacked rows": (
        FILLED + "for x in batches(data, size):\n    net(x)\n",
        ["-    if len(batch) > 0:", "+    if len(batch) > 1:"],
    ),
    "a rest that is handed out whatever it is": (
        FILLED.replace("    if len(batch) > 0:\n        yield", "    yield")
        + "for x in batches(data, size):\n    net(x)\n",
        ["-    yield torch.stack(batch)", "+    if len(batch) > 1:", "+        yield torch.stack(batch)"],
    ),
    "a rest beside an option": (
        FILLED.replace("size):", "size, drop_last):", 1).replace("if len(batch) > 0:", "if batch and not drop_last:")
        + "for x in batches(data, size, False):\n    net(x)\n",
        ["-    if batch and not drop_last:", "+    if len(batch) > 1 and not drop_last:"],
    ),
    "as many as a budget holds": (
        """def batches(lengths, budget):
    batch, used = [], 0
    for i, length in enumerate(lengths):
        if batch and used + length > budget:
            yield batch
            batch, used = [], 0
        batch.append(i)
        used += length
    if batch:
        yield batch
for x in DataLoader(data, batch_sampler=batches([1, 1, 1, 9, 1, 1, 1, 1, 1], 9)):
    net(x)
""",
        [
            "-            yield batch",
            "+            if len(batch) > 1:",
            "+                yield batch",
            "-    if batch:",
            "+    if len(batch) > 1:",
        ],
    ),
    "lists that are gathered": (
        """class Batches(Sampler):
    def __init__(self, n, size):
        self.batches, batch = [], []
        for i in range(n):
            batch.append(i)
            if len(batch) >= size:
                self.batches.append(batch)
                batch = []
        if batch:
            self.batches.append(batch)
    def __iter__(self):
        return iter(self.batches)
for x in DataLoader(data, batch_sampler=Batches(9, size)):
    net(x)
""",
        ["-        if batch:", "+        if len(batch) > 1:"],
    ),
    "starts in the loop that trains": (
        "order = torch.randperm(9)\nfor i in range(0, len(order), size):\n    net(data[order[i:i + size]])\n",
        ["-for i in range(0, len(order), size):", "+for i in range(0, len(order) - 1, size):"],
    ),
    "starts in a generator, with an end that is named": (
        """def batches(rows, size):
    n = rows.shape[0]
    for at, start in enumerate(range(0, n, size)):
        end = min(start + size, n)
        yield at, rows[start:end]
for _, x in batches(data, size):
    net(x)
""",
        [
            "-    for at, start in enumerate(range(0, n, size)):",
            "+    for at, start in enumerate(range(0, n - 1, size)):",
        ],
    ),
    "starts in a comprehension": (
        "batches = [data[i : i + size] for i in range(0, len(data), size)]\nfor x in batches:\n    net(x)\n",
        [
            "-batches = [data[i : i + size] for i in range(0, len(data), size)]",
            "+batches = [data[i : i + size] for i in range(0, len(data) - 1, size)]",
        ],
    ),
    "starts in a helper of a sampler": (
        """def chunked(rows, size):
    for i in range(0, len(rows), size):
        yield rows[i:i + size]
class Batches(Sampler):
    def __iter__(self):
        yield from chunked(list(range(9)), 4)
for x in DataLoader(data, batch_sampler=Batches()):
    net(x)
""",
        ["-    for i in range(0, len(rows), size):", "+    for i in range(0, len(rows) - 1, size):"],
    ),
    "starts that a loop counts": (
        """def batches(rows, size):
    i = 0
    while i < len(rows):
        yield rows[i:i + size]
        i += size
for x in batches(data, size):
    net(x)
""",
        ["-    while i < len(rows):", "+    while i < len(rows) - 1:"],
    ),
    "a data set that hands out batches": (
        """class Rows(IterableDataset):
    def __iter__(self):
        for i in range(0, len(data), size):
            yield data[i:i + size]
for x in DataLoader(Rows(), batch_size=None):
    net(x)
""",
        ["-        for i in range(0, len(data), size):", "+        for i in range(0, len(data) - 1, size):"],
    ),
    "pieces in the loop that trains": (
        "for index in torch.randperm(9).split(size):\n    net(data[index])\n",
        ["+    if len(index) == 1:", "+        continue"],
    ),
    "pieces of two tensors": (
        "labels = torch.zeros(9)\nfor at, (x, y) in enumerate(zip(torch.split(data, size), labels.split(size))):\n    net(x)\n",
        ["+    if len(x) == 1:", "+        continue"],
    ),
    "pieces that a generator hands on": (
        """def batches(rows):
    yield from rows.split(size)
for x in batches(data):
    net(x)
""",
        ["-    yield from rows.split(size)", "+    yield from [piece for piece in rows.split(size) if len(piece) > 1]"],
    ),
    "pieces that are kept": (
        "pieces = data.split(size)\nfor x in pieces:\n    net(x)\n",
        ["-pieces = data.split(size)", "+pieces = [piece for piece in data.split(size) if len(piece) > 1]"],
    ),
    "pieces of an array": (
        "index = [part.tolist() for part in np.array_split(np.arange(3), 2)]\nfor x in DataLoader(data, batch_sampler=index):\n    net(x)\n",
        [
            "-index = [part.tolist() for part in np.array_split(np.arange(3), 2)]",
            "+index = [part.tolist() for part in np.array_split(np.arange(3), 2) if len(part) > 1]",
        ],
    ),
    "batches that are counted": (
        """order = torch.randperm(9)
for k in range(math.ceil(9 / size)):
    index = order[k * size:(k + 1) * size]
    net(data[index])
""",
        ["+    if len(index) == 1:", "+        continue"],
    ),
    "torch's own batch sampler": (
        "sampler = BatchSampler(SequentialSampler(data), 4, False)\nfor x in DataLoader(data, batch_sampler=sampler):\n    net(x)\n",
        [
            "-sampler = BatchSampler(SequentialSampler(data), 4, False)",
            "+sampler = BatchSampler(SequentialSampler(data), 4, True)",
        ],
    ),
    "a sampler that an evaluation walks too": (
        BUCKETS + "other = Buckets([0], 4)\n" + WALKED,
        [
            "-for x in DataLoader(data, batch_sampler=Buckets([0, 1] * 4 + [0], 4)):",
            "+for x in DataLoader(data, batch_sampler=Buckets([0, 1] * 4 + [0], 4, drop_last=True)):",
        ],
    ),
    "one without an option, of rows with labels": (
        BUCKETS.replace(", drop_last=False", "")
        .replace(", self.drop_last", "")
        .replace(", drop_last", "")
        .replace(
            "        if not self.drop_last:\n            for bucket in buckets.values():\n                if bucket:\n                    yield",
            "        for bucket in buckets.values():\n            if bucket:\n                yield",
        )
        + "other = Buckets([0], 4)\n"
        + WALKED.replace("x in", "x, _ in").replace("data,", "[(x, 0) for x in data],"),
        ["+    if len(x) == 1:", "+        continue"],
    ),
    "a generator that an evaluation walks too": (
        """def batches(rows, size):
    for i in range(0, len(rows), size):
        yield rows[i:i + size], i
other = list(batches(data, 8))
for x, i in batches(data, size):
    net(x)
""",
        ["+    if len(x) == 1:", "+        continue"],
    ),
}


@pytest.mark.parametrize("name", CUT)
def test_it_is_left_out_where_it_is_cut(name: str, tmp_path: pathlib.Path) -> None:
    """The program runs on, with every other batch; a second time nothing is left to do."""
    source, lines = HEAD + CUT[name][0], CUT[name][1]
    after = mended("skip_batch_of_one", source, tmp_path)
    assert diff_lines(source, after) == lines
    assert run(after, tmp_path / "train.py")["net"].num_batches_tracked >= 1


ONE = "Expected more than 1 value per channel when training, got input size torch.Size([1, 3])"
STARTS = "for i in range(0, len(data), size):\n    net(data[i:i + size])\n"
LEFT = {
    "batches of one": (STARTS.replace("for i", "size = 1\nfor i").replace("size = 4\n", ""), ONE),
    "a feature map without extent": (STARTS, ONE.replace("value per channel", "spatial element").replace("[1, 3", "[2, 3, 1")),
    "another error": (STARTS, "mat1 and mat2 shapes cannot be multiplied (1x3 and 4x3)"),
    "starts that leave the rest out": (STARTS.replace("len(data)", "len(data) - len(data) % size"), ONE),
    "starts of whole batches": (STARTS.replace("len(data)", "9 // size * size"), ONE),
    "whole batches that are counted": (
        "for k in range(9 // size):\n    index = slice(k * size, (k + 1) * size)\n    net(data[index])\n", ONE,
    ),
    "windows along time": (STARTS.replace("data[i:", "data[:, i:"), ONE),
    "windows that overlap": (STARTS.replace("i + size", "i + 2"), ONE),
    "a rest that is asked for its length": (FILLED.replace("> 0", ">= 2") + "for x in batches(data, size):\n    net(x)\n", ONE),
    "pieces along features": ("for x in data.split(2, dim=1):\n    net(x)\n", ONE),
    "a text that is taken apart": (
        """def batches(lines, mark):
    for line in lines:
        total = 0
        for word in line.split(mark):
            total += len(word)
        yield torch.ones(total)
for x in batches(["1 2 3"], " "):
    net(x[None])
""",
        ONE,
    ),
    "rows that are read": (
        """class Rows(Sampler):
    def __init__(self, text):
        self.rows = []
        for line in text:
            row = []
            row.append(line)
            self.rows.append(row)
    def __iter__(self):
        return iter([[0], [1, 2]])
for x in DataLoader(data, batch_sampler=Rows("ab")):
    net(x)
""",
        ONE,
    ),
    "a loader that makes batches": ("for x in DataLoader(data, batch_size=4):\n    net(x)\n", ONE),
}  # fmt: skip


@pytest.mark.parametrize(("source", "message"), LEFT.values(), ids=LEFT)
def test_others_are_left_alone(source: str, message: str, tmp_path: pathlib.Path) -> None:
    source = HEAD.replace("size = 4\n", "" if "size = 1" in source else "size = 4\n") + source
    assert rewritten(tmp_path, "skip_batch_of_one", source, "    net(", message=message) == source


MODULE = """import lightning as L
from torch import nn
from torch.utils.data import DataLoader, Sampler
""" + BUCKETS + """class Walks(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(self.rows, batch_sampler=Buckets(self.lengths, 4))
    def val_dataloader(self):
        return DataLoader(self.held_out, batch_sampler=Others(self.lengths, 4))
class Others(Buckets):
    pass
class Model(L.LightningModule):
    def training_step(self, batch, index):
        return self.norm(batch).mean()
"""  # fmt: skip


def test_a_trainer_walks_the_sampler(tmp_path: pathlib.Path) -> None:
    """What a library's trainer trains from is looked through too."""
    after = rewritten(tmp_path, "skip_batch_of_one", MODULE, "self.norm(batch)", message=ONE)
    assert diff_lines(MODULE, after) == CUT["a list that is full or left over"][1]


def test_the_option_of_a_file(tmp_path: pathlib.Path) -> None:
    """Where a file says whether a sampler leaves its rests out, that is the other way."""
    source = "import json\n" + HEAD + BUCKETS + """cfg = json.load(open("cfg.json"))
for x in DataLoader(data, batch_sampler=Buckets([0, 1] * 4 + [0], 4, cfg["drop_last"])):
    net(x)
"""  # fmt: skip
    (tmp_path / "cfg.json").write_text('{"drop_last": false}\n')
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "    net(x)")}, ONE)
    found = list(find_codemod("skip_batch_of_one")(Context(program=program, incident=incident)))
    cut, option = sorted(found, key=lambda one: -one.belief)
    assert (cut.culprit.code or "").strip() == "if bucket:"
    assert [(pathlib.Path(one.file).name, one.new) for one in option.edits] == [("cfg.json", "true")]


def test_an_iterator_of_the_program_s_own(tmp_path: pathlib.Path) -> None:
    """However it cuts its batches: the loop passes over one of one sample."""
    source = HEAD + """class Rows:
    def __iter__(self):
        self.at = 0
        return self
    def __next__(self):
        if self.at >= len(data):
            raise StopIteration
        self.at += 4
        return data[slice(self.at - 4, self.at)], 1
for x, y in Rows():
    net(x)
"""  # fmt: skip
    after = rewritten(tmp_path, "skip_batch_of_one", source, "    net(x)", message=ONE)
    assert diff_lines(source, after) == ["+    if len(x) == 1:", "+        continue"]
