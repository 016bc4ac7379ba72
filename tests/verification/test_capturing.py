"""While a CUDA graph is captured nothing is asked of the GPU: not the loss of its backward, nor the gradients of its step."""

from __future__ import annotations

import pathlib

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.run import Job, run_program
from explainer.verification.verify import Watch, verify_command
from tests import forked

pytestmark = pytest.mark.torch
# On a machine without a GPU: the block stands for a capture, in which reading a value raises as it does there.
PROGRAM = """
import torch
from unittest import mock

torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)


def refuse(*_):
    raise RuntimeError("CUDA error: operation not permitted when stream is capturing")


def step(x):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()


step(torch.randn(4, 3))
with (
    mock.patch("torch.cuda.is_initialized", lambda: True),
    mock.patch("torch.cuda.is_current_stream_capturing", lambda: True),
    mock.patch.object(torch.Tensor, "__float__", refuse),
    mock.patch.object(torch.Tensor, "item", refuse),
):
    step(torch.randn(4, 3))
for x in torch.randn(20, 4, 3):
    step(x)
"""


def test_a_capture_is_left_alone(tmp_path: pathlib.Path) -> None:
    """Its step is counted, and its loss is not read."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(PROGRAM)
    proof = verify_command((forked.python(), "train.py"), str(tmp_path), Watch(steps=4))
    assert (proof.verdict, proof.reasons) == ("green", ())
    (process,) = proof.processes
    assert (dict(process.steps), len(process.losses), len(process.rows)) == ({"0 SGD": 4}, 3, 3)


FOLDS = """from concurrent.futures import ProcessPoolExecutor

import torch


def fit(fold):
    torch.set_num_threads(1)
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3 + fold):
        loss = net(torch.randn(4, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print(*pool.map(fit, range(3)))
"""


def test_workers_that_train_tell_their_steps(tmp_path: pathlib.Path) -> None:
    """A pool's workers leave past `atexit`, and have no rank."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(FOLDS)
    proof = verify_command(
        (forked.python(), "train.py"), str(tmp_path), Watch(steps=2, past=(("0 SGD", 4), ("1 SGD", 5)))
    )
    assert (proof.verdict, proof.reasons) == ("green", ())
    assert sum(count for one in proof.processes for _, count in one.steps) == 12


TRIALS = """import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import torch


def fit(seed):
    try:
        net = torch.nn.Linear(3, 1)
        net(torch.randn(4, 3)).detach().sum().backward()
    except Exception as problem:
        return str(problem)


if __name__ == "__main__":
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        if all(pool.map(fit, range(2))):
            raise RuntimeError("no trial finished")
"""


def test_workers_that_fail_quietly_tell_what_they_caught(tmp_path: pathlib.Path) -> None:
    """What a worker catches and hands on as text is all that there is to explain."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(TRIALS)
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=load_catalog())
    run = run_program(job, lambda *_: None, is_shown=False)
    assert run.report is not None
    assert run.report.findings[0].cause == "no-graph/detached"
