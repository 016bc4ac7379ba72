"""A cache for decoding is filled outside of training, where a trace saw it written under a condition that asks for it."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import CARRIED, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SOURCE = """import torch
from torch import nn


class KVCache(nn.Module):
    def __init__(self, slots):
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(slots, 4))

    def update(self, at, k_val):
        k_out = self.k_cache
        k_out[at] = k_val
        return k_out


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(4, 4)
        self.kv_cache = None

    def forward(self, x, at):
        k = self.key(x)
        if self.kv_cache is not None:
            k = self.kv_cache.update(at, k)
        return x @ k.t()


net = Attention()
net.kv_cache = KVCache(8)
for _ in range(2):
    net(torch.randn(8, 4), torch.arange(8)).sum().backward()
"""
ELSEWHERE = {
    "a condition of another matter": SOURCE.replace("if self.kv_cache is not None:", "if x.is_floating_point():"),
    "a value that nothing else binds": SOURCE.replace("k = self.key(x)", "x = self.key(x)"),
    "a condition that asks already": SOURCE.replace("is not None:", "is not None and not self.training:"),
}


def planned(folder: pathlib.Path, source: str, says: str = "k_out[at] = k_val") -> str:
    line = TracedLine(
        kind=CARRIED, operation="__setitem__", file="train.py", line=line_of(source, says), says="carries the graph"
    )
    program = write(folder, {"train.py": source})
    proposal = best("skip_cache_in_training", program, incident=replace(failed(), traced=(line,)))
    return source if proposal is None else splice(source, proposal.edits) or ""


def test_it_is_filled_for_decoding_alone(tmp_path: pathlib.Path) -> None:
    """The cache hangs on the module from outside; its write stands in a method of its own."""
    after = planned(tmp_path, SOURCE)
    assert changed_lines(SOURCE, after) == ["if self.kv_cache is not None and not self.training:"]
    assert planned(tmp_path, after) == after


def test_another_write(tmp_path: pathlib.Path) -> None:
    assert planned(tmp_path, SOURCE, "self.key = nn") == SOURCE


@pytest.mark.parametrize("source", ELSEWHERE.values(), ids=ELSEWHERE)
def test_nothing(tmp_path: pathlib.Path, source: str) -> None:
    assert planned(tmp_path, source) == source
