"""What a worker hands to another process is detached there."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SAID = "Cowardly refusing to serialize non-leaf tensor which requires_grad"
SOURCE = """import torch
from torch import nn
from torch import multiprocessing as mp
import torch.nn.functional as F


class Answer:
    def __init__(self, *parts):
        self.parts = parts


def work(job):
    model = nn.Linear(3, 1)
    loss = F.mse_loss(model(job.x), job.y)
    loss.backward()
BODY

with mp.Pool(2) as pool:
    found = pool.map(work, jobs)
"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("    return loss", ["    return loss.detach()"]),
        ("    return loss.item(), loss", ["    return loss.item(), loss.detach()"]),
        ("    return {'loss': loss, 'x': job.x}", ["    return {'loss': loss.detach(), 'x': job.x}"]),
        ("    return Answer(3, loss)", ["    return Answer(3, loss.detach())"]),
        ("    delta = {n: 2 * p for n, p in model.named_parameters()}\n    return delta", ["    delta = {n: 2 * p.detach() for n, p in model.named_parameters()}"]),
        ("    return [p.sum() for p in model.parameters()]", ["    return [p.detach().sum() for p in model.parameters()]"]),
        ("    return [p.detach() for p in model.parameters()]", []),
        ("    return [p.grad for p in model.parameters()]", []),
        ("    return loss.item()", []),
        ("    return model.state_dict()", []),
    ],
)  # fmt: skip
def test_what_a_pool_returns(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    source = SOURCE.replace("BODY", body)
    after = rewritten(tmp_path, "detach_for_sending", source, "pool.map", message=SAID)
    assert [one[1:] for one in diff_lines(source, after) if one.startswith("+")] == wanted
