"""What a name stands for when a write in place reaches it."""

from __future__ import annotations

import pathlib

import pytest

from explainer.source.graph.alias import has_two_meanings
from tests.fix.rewriting import write

SOURCE = """import torch
def run(clip, cells):
    states, outputs = torch.zeros(2, 4, 8), []
    for frame in clip:
        x = frame
        for i, cell in enumerate(cells):
            states[i] = cell(x, states[i])
            x = states[i]
        outputs.append(x)
    return torch.stack(outputs)
"""
ONE = {
    "a copy": SOURCE.replace("x = states[i]", "x = states[i].clone()"),
    "nothing is kept": SOURCE.replace("outputs.append(x)", "print(x.mean())"),
    "another tensor": SOURCE.replace("x = states[i]", "x = frame[i]"),
}


def test_views_that_a_loop_collects(tmp_path: pathlib.Path) -> None:
    """All entries become the last state: without the write in place they would be the states of their steps."""
    assert has_two_meanings(write(tmp_path, {"net.py": SOURCE}))


@pytest.mark.parametrize("source", ONE.values(), ids=ONE)
def test_one_meaning(source: str, tmp_path: pathlib.Path) -> None:
    assert not has_two_meanings(write(tmp_path, {"net.py": source}))
