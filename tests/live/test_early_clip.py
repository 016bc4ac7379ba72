"""Clips before the backward whose gradients they were to bound: no error, and no bound."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator

import pytest
import torch

from explainer.live.early_clip import EarlyClips
from tests.gate import some_at_gate
from tests.live.running import run

pytestmark = pytest.mark.torch
Program = Callable[[torch.nn.Linear, torch.optim.Optimizer], object]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Program], list[int]]]:
    """Runs four rounds of a program; the early clips of each line that is told."""
    utils = torch.nn.utils
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        for module in (utils, utils.clip_grad):
            monkeypatch.setattr(module, name, getattr(module, name))
    watcher = EarlyClips(torch)
    watcher.watch()

    def rounds(program: Program) -> list[int]:
        torch.manual_seed(0)
        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        optimizer.register_step_pre_hook(lambda one, *_: watcher.before_step(one))
        optimizer.register_step_post_hook(lambda one, *_: watcher.after_step(one))
        for _ in range(4):
            program(net, optimizer)
        return [one["steps"] for one in watcher.told]

    return rounds


def loss(net: torch.nn.Linear) -> torch.Tensor:
    return net(torch.ones(8, 4)).exp().sum()


def clip(net: torch.nn.Linear, limit: float = 0.1) -> torch.Tensor:
    return torch.nn.utils.clip_grad_norm_(net.parameters(), limit)


def before_backward(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    clip(net)
    loss(net).backward()
    optimizer.step()


def before_backward_of_zeros(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad(set_to_none=False)
    torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.1, norm_type=1)
    loss(net).backward()
    optimizer.step()


def behind_step(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    loss(net).backward()
    optimizer.step()
    clip(net)
    optimizer.zero_grad()


def before_clearing(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    clip(net)
    optimizer.zero_grad()
    loss(net).backward()
    optimizer.step()


def in_closure(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        clip(net)
        value = loss(net)
        value.backward()
        return value

    optimizer.step(closure)


def in_its_place(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss(net).backward()
    clip(net)
    optimizer.step()


def of_what_came_before_the_step(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    clip(net)
    optimizer.step()
    optimizer.zero_grad()
    loss(net).backward()


def of_each_part(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(3):
        clip(net)
        loss(net).backward()
    optimizer.step()
    optimizer.zero_grad()


def of_the_first_loss(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss(net).backward()
    clip(net)
    loss(net).backward()
    optimizer.step()


def twice(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    loss(net).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    optimizer.step()


def of_gradients_that_add_up(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    clip(net)
    loss(net).backward()
    optimizer.step()


def of_another_network(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    torch.nn.utils.clip_grad_norm_(torch.nn.Linear(2, 2).parameters(), 0.1)
    loss(net).backward()
    optimizer.step()


def at_no_limit(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    clip(net, float("inf"))
    loss(net).backward()
    optimizer.step()


def far_below_the_limit(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    clip(net, 1e6)
    loss(net).backward()
    optimizer.step()


def of_gradients_set_by_hand(net: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    total = [torch.zeros_like(one) for one in net.parameters()]
    for _ in range(2):
        net.zero_grad()
        loss(net).backward()
        clip(net)
        total = [kept + one.grad for kept, one in zip(total, net.parameters(), strict=True)]
    for kept, one in zip(total, net.parameters(), strict=True):
        one.grad = kept
    optimizer.step()


EARLY = (before_backward, before_backward_of_zeros, behind_step, before_clearing, in_closure)
MEANT = (
    in_its_place, of_what_came_before_the_step, of_each_part, of_the_first_loss, twice, of_gradients_that_add_up,
    of_another_network, at_no_limit, far_below_the_limit, of_gradients_set_by_hand,
)  # fmt: skip


@pytest.mark.parametrize("program", MEANT)
def test_a_clip_in_its_place(program: Program, watched: Callable[[Program], list[int]]) -> None:
    """Nothing is told of a clip that takes gradients which no step was made with, or that would bound nothing."""
    assert watched(program) == []


@pytest.mark.parametrize("program", EARLY)
def test_a_clip_that_comes_too_early(program: Program, watched: Callable[[Program], list[int]]) -> None:
    """It is told with the steps that it did not bound."""
    (steps,) = watched(program)
    assert steps >= 2


SCRIPT = """import torch
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=RATE)
for step in range(12):
    loss = net(torch.ones(8, 4)).pow(2).sum()
    opt.zero_grad()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    loss.backward()
    opt.step()
    if not loss.isfinite():
        raise FloatingPointError(f"loss is {loss.item()}")
"""
SCRIPTS = {
    "one that trains": (SCRIPT.replace("RATE", "0.01"), 0, "optimizer/step-without-gradients"),
    "one that diverges": (SCRIPT.replace("RATE", "1e6"), 1, "nan/learning-rate-divergence"),
}


@pytest.mark.parametrize(("source", "status", "cause"), some_at_gate(SCRIPTS, ["one that trains"]))
def test_a_program_that_clips_too_early(source: str, status: int, cause: str, tmp_path: pathlib.Path) -> None:
    """It is told with its line, also where the values have grown out of all bounds for it."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run(tmp_path, "train.py")
    assert (done.status, done.report.findings[0].cause) == (status, cause)
    (one,) = done.processes[0].early_clips
    assert (pathlib.Path(one.file).name, one.line) == ("train.py", 7)
