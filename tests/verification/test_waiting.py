"""A script that waits for the results of children which have made their steps and left."""

from __future__ import annotations

import pathlib
import sys

import pytest

from explainer.model.verification import GREEN
from explainer.verification.verify import Watch, verify_command

PARENT = """import multiprocessing as mp


def train(queue):
    import torch
    net = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(50):
        loss = net(torch.ones(2, 3)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    queue.put(loss.item())


if __name__ == "__main__":
    queue = mp.get_context("spawn").SimpleQueue()
    child = mp.get_context("spawn").Process(target=train, args=(queue,))
    child.start()
    child.join()
    print(queue.get())
"""


@pytest.mark.torch
def test_a_parent_that_waits_for_a_result_is_ended(tmp_path: pathlib.Path) -> None:
    """The child leaves after three steps and puts no result; the run is green, and far from out of time."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(PARENT)
    found = verify_command([sys.executable, "train.py"], str(tmp_path), Watch(steps=3, timeout=300))
    assert (found.verdict, found.reasons) == (GREEN, ())
    assert [count for one in found.processes for _, count in one.steps] == [3]
    assert found.seconds < 250
