"""What a float32 program makes float64 in few places is made in float32, wherever it met a layer."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import numpy as np
import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("state", torch.zeros(n, 4, dtype=torch.float64))

    def forward(self, ids):
        return self.state[ids]


memory, head = Memory(8), nn.Linear(4, 1)
loss = head(memory(torch.arange(3))).mean()
loss.backward()
"""
MADE = "torch.zeros(n, 4, dtype=torch.float64)"
DOUBLE = {"left_dtype": "Double", "right_dtype": "Float"}
WAYS = {
    "asked for": (MADE, "torch.zeros(n, 4)"),
    "first": ("torch.full(dtype=torch.double, size=(n, 4), fill_value=0.5)", "torch.full(size=(n, 4), fill_value=0.5)"),
    "a cast": ("torch.zeros(n, 4).double()", "torch.zeros(n, 4)"),
    "to": ("torch.zeros(n, 4).to(torch.float64)", "torch.zeros(n, 4)"),
    "an array": ("torch.from_numpy(np.zeros((n, 4)))", "torch.from_numpy(np.zeros((n, 4))).float()"),
}
RIGHT = {
    "in float32": SOURCE.replace(MADE, "torch.zeros(n, 4)"),
    "an array that is cast": SOURCE.replace(MADE, "torch.from_numpy(np.zeros((n, 4))).float()"),
    "meant": SOURCE.replace("loss = ", "checks = [torch.ones(k, dtype=torch.float64) for k in (1, 2)]\n" * 5 + "loss = "),
}  # fmt: skip


@pytest.mark.parametrize(("made", "wanted"), WAYS.values(), ids=WAYS)
def test_it_is_made_in_float32(made: str, wanted: str, tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace(MADE, made)
    after = rewritten(tmp_path, "leave_out_float64", source, "head(memory", fields=DOUBLE)
    assert changed_lines(source, after) == [f'self.register_buffer("state", {wanted})']


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_programs_stay(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "leave_out_float64", source, "head(memory", fields=DOUBLE) == source


def test_another_dtype_says_nothing_of_it(tmp_path: pathlib.Path) -> None:
    fields = {"left_dtype": "BFloat16", "right_dtype": "Float"}
    assert rewritten(tmp_path, "leave_out_float64", SOURCE, "head(memory", fields=fields) == SOURCE
