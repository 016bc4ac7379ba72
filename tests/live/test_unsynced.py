"""What is thawed behind DistributedDataParallel trains on each rank apart, and nothing says so."""

from __future__ import annotations

import pathlib

import pytest

from explainer.model.verification import BYPASSED, THAWED, ProcessReport, Unsynced
from explainer.verification.judge import faults_without_a_word
from tests.live.running import run

pytestmark = pytest.mark.torch

PROGRAM = """import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def train(rank, meeting):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
    net[0].requires_grad_(False)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(5):
        if step == 1:
            net[0].requires_grad_(True)
        optimizer.zero_grad()
        x = torch.full((2, 3), rank + 1.0)
        model(x).square().mean().backward()
        if MEANS and step:
            for one in net[0].parameters():
                dist.all_reduce(one.grad)
                one.grad /= 2
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, (sys.argv[1],), nprocs=2)
"""


@pytest.mark.parametrize(
    "means", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["apart", "averaged by hand"]
)
def test_what_is_thawed_later(tmp_path: pathlib.Path, means: bool) -> None:
    """It is told with the line that wraps, unless the ranks hold the same values."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(PROGRAM.replace("MEANS", str(means)))
    done, _ = run(tmp_path, "train.py", str(tmp_path / "meeting"))
    assert done.status == 0
    told = [one for one in faults_without_a_word(done.processes) if THAWED in one]
    assert len(told) == (0 if means else 1)
    assert means or told[0].startswith("train.py:14 ")
    assert means or (done.report is not None and done.report.findings[0].cause == "distributed/mode-unsupported")


PAST = """import os
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def train(rank, meeting):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 1)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(5):
        optimizer.zero_grad()
        x = torch.full((2, 3), rank + 1.0)
        CALLED(x).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            model(x)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, (sys.argv[1],), nprocs=2)
"""


@pytest.mark.parametrize("called", ["net", pytest.param("model", marks=pytest.mark.slow)])
def test_what_is_called_past_its_wrapper(tmp_path: pathlib.Path, called: str) -> None:
    """An evaluation through the wrapper averages nothing either."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(PAST.replace("CALLED", called))
    done, _ = run(tmp_path, "train.py", str(tmp_path / "meeting"))
    assert done.status == 0
    told = [one for one in faults_without_a_word(done.processes) if BYPASSED in one or THAWED in one]
    assert len(told) == (1 if called == "net" else 0)
    assert called == "model" or told[0].startswith("train.py:14 ")
    cause = "trainer/backward-through-the-wrong-object"
    assert called == "model" or (done.report is not None and done.report.findings[0].cause == cause)


def of_rank(*sums: float) -> ProcessReport:
    one = Unsynced(kind="thawed", module="Net", names=("0.weight",), sums=sums, file="train.py", line=9)
    return ProcessReport(pid=1, unsynced=(one,))


@pytest.mark.parametrize(
    ("ranks", "count"),
    [([(1.0, 2.0), (1.0, 2.5)], 1), ([(1.0, 2.0), (1.0, 2.0)], 0), ([(1.0, 2.0), (1.0,)], 0), ([(1.0,)], 0)],
    ids=["apart", "together", "as far as both have come", "one rank"],
)
def test_the_ranks_are_compared(ranks: list[tuple[float, ...]], count: int) -> None:
    """By what they held before the same step."""
    assert len(faults_without_a_word([of_rank(*one) for one in ranks])) == count
