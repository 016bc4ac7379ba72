"""Ranks that leave a loop each by its own condition leave it together."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

LOST = "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:687."
SOURCE = """import torch
import torch.distributed as dist


def validated(model):
    return SCORE


def train(rank, model, batches, stopping):
    best = 0.0
    for epoch in range(9):
        for x in batches:
            loss = model(x).sum()
            loss.backward()
        value = validated(model)
        if TEST:
            break
"""
TOGETHER = [
    "stop = torch.tensor(float(bool(stopping.update(value))))",
    "dist.all_reduce(stop, op=dist.ReduceOp.MAX)",
    "if stop > 0:",
]
OWN = "model.eval().score()"


@pytest.mark.parametrize(
    ("score", "test", "message", "wanted"),
    [
        (OWN, "stopping.update(value)", LOST, TOGETHER),
        (OWN, "stopping.update(value)", "it failed", []),
        ("dist.all_reduce(model.score())", "stopping.update(value)", LOST, []),
        (OWN, "epoch > 5", LOST, []),
        (OWN, "epoch == len(batches)", LOST, []),
    ],
    ids=["its own value", "another failure", "a value of all", "a count of rounds", "a length"],
)
def test_early_stopping(tmp_path: pathlib.Path, score: str, test: str, message: str, wanted: list[str]) -> None:
    source = SOURCE.replace("SCORE", score).replace("TEST", test)
    after = rewritten(tmp_path, "leave_loop_together", source, "loss.backward()", message=message)
    assert [one.strip() for one in changed_lines(source, after)] == wanted
    assert rewritten(tmp_path, "leave_loop_together", after, "loss.backward()", message=message) == after
