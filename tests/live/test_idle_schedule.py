"""A schedule of an optimizer that never steps, beside one that trains the same parameters at one rate."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, ReduceLROnPlateau, SequentialLR, StepLR

from explainer.live.idle_schedule import IdleSchedules
from tests.fix.rewriting import line_of
from tests.gate import some_at_gate
from tests.live.running import run

pytestmark = pytest.mark.torch
Told = list[dict[str, Any]]
Net = torch.nn.Linear


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[IdleSchedules]:
    """A watcher that sees what is made, and each step."""
    for owner in (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler, ReduceLROnPlateau):
        monkeypatch.setattr(owner, "__init__", owner.__init__)
    steps: dict[int, int] = {}
    watcher = IdleSchedules(torch, lambda one: steps.get(id(one), 0))
    watcher.watch()
    from torch.optim import optimizer as module

    before = module.register_optimizer_step_pre_hook(lambda one, *_: watcher.before_step(one))
    after = module.register_optimizer_step_post_hook(
        lambda one, *_: steps.__setitem__(id(one), steps.get(id(one), 0) + 1)
    )
    yield watcher
    before.remove()
    after.remove()


def step(net: Net, optimizer: Any) -> None:
    optimizer.zero_grad()
    net(torch.ones(2, 3)).pow(2).sum().backward()
    optimizer.step()


def rounds(net: Net, optimizer: Any, *schedules: Any, number: int = 4) -> None:
    for _ in range(number):
        step(net, optimizer)
        for one in schedules:
            one.step()


def right(net: Net) -> None:
    optimizer = SGD(net.parameters(), lr=0.1)
    rounds(net, optimizer, StepLR(optimizer, 1))


def two_networks(net: Net) -> None:
    other = torch.nn.Linear(3, 1)
    first, second = Adam(net.parameters()), Adam(other.parameters())
    schedules = StepLR(first, 1), StepLR(second, 1)
    for _ in range(4):
        rounds(net, first, *schedules, number=1)
        step(other, second)


def other_steps_seldom(net: Net) -> None:
    other = torch.nn.Linear(3, 1)
    first, second = SGD(net.parameters(), lr=0.1), SGD(other.parameters(), lr=0.1)
    rounds(net, first, StepLR(first, 1), StepLR(second, 1))


def stepped_at_last(net: Net) -> None:
    """Every fourth round is the other's."""
    first, second = SGD(net.parameters(), lr=0.1), SGD(net.parameters(), lr=0.1)
    rounds(net, first, StepLR(second, 1))
    step(net, second)


def copied_by_hand(net: Net) -> None:
    first, second = SGD(net.parameters(), lr=0.1), SGD(net.parameters(), lr=0.1)
    schedule = StepLR(second, 1)
    for _ in range(4):
        rounds(net, first, schedule, number=1)
        first.param_groups[0]["lr"] = schedule.get_last_lr()[0]


def shown_beside_the_real_one(net: Net) -> None:
    first, second = SGD(net.parameters(), lr=0.1), SGD(net.parameters(), lr=0.1)
    rounds(net, first, StepLR(first, 100), StepLR(second, 100))


def drawn_beforehand(net: Net) -> None:
    """The rates of a schedule are listed before the training, with an optimizer for that alone."""
    schedule = LambdaLR(SGD(net.parameters(), lr=0.1), lambda at: 0.9**at)
    for _ in range(9):
        schedule.step()
    rounds(net, SGD(net.parameters(), lr=0.1))


class Wrapper(torch.optim.Optimizer):
    """What Lookahead, SAM and Horovod do: the groups are those of the optimizer that is wrapped."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self) -> None:  # type: ignore[override]
        """The wrapper steps by itself."""
        for group in self.param_groups:
            for one in group["params"]:
                one.data -= group["lr"] * one.grad


def wrapped_behind_the_schedule(net: Net) -> None:
    inner = SGD(net.parameters(), lr=0.1)
    schedule = StepLR(inner, 1)
    rounds(net, Wrapper(inner), schedule)


def a_part_of_each(net: Net) -> None:
    both = torch.nn.Linear(3, 1)
    first = SGD([net.weight, net.bias], lr=0.1)
    second = SGD([net.weight, both.weight], lr=0.1)
    rounds(net, first, StepLR(second, 1))


def once_at_the_end(net: Net) -> None:
    rounds(net, SGD(net.parameters(), lr=0.1))
    StepLR(SGD(net.parameters(), lr=0.1), 1).step()


def made_inline(net: Net) -> None:
    optimizer = SGD(net.parameters(), lr=0.1)
    rounds(net, optimizer, StepLR(SGD(net.parameters(), lr=0.1), 10))


def made_anew(net: Net) -> None:
    optimizer = SGD([net.bias], lr=0.1)
    schedule = CosineAnnealingLR(optimizer, 9)
    optimizer = SGD(net.parameters(), lr=0.1)
    rounds(net, optimizer, schedule)


def on_a_plateau(net: Net) -> None:
    optimizer, other = Adam(net.parameters()), Adam(net.parameters())
    schedule = ReduceLROnPlateau(other)
    for _ in range(4):
        step(net, optimizer)
        schedule.step(1.0)


def one_behind_another(net: Net) -> None:
    optimizer, other = Adam(net.parameters()), Adam(net.parameters())
    parts = [LinearLR(other), CosineAnnealingLR(other, 9)]
    rounds(net, optimizer, SequentialLR(other, parts, [2]))


def by_epochs(net: Net) -> None:
    optimizer = SGD(net.parameters(), lr=0.1)
    schedule = helper(net)
    for _ in range(2):
        rounds(net, optimizer)
        schedule.step()


def helper(net: Net) -> StepLR:
    other = SGD(net.parameters(), lr=0.1)
    return StepLR(other, 10)


RIGHT = [right, two_networks, other_steps_seldom, stepped_at_last, copied_by_hand, shown_beside_the_real_one,
         drawn_beforehand, wrapped_behind_the_schedule, a_part_of_each, once_at_the_end]  # fmt: skip
WRONG = {
    made_inline: ("StepLR(SGD(net.parameters(), lr=0.1), 10))", 1, False),
    made_anew: ("CosineAnnealingLR(optimizer, 9)", 1, True),
    on_a_plateau: ("ReduceLROnPlateau(other)", 1, False),
    one_behind_another: ("LinearLR(other), Cos", 1, False),
    by_epochs: ("return StepLR(other, 10)", 2, False),
}


@pytest.mark.parametrize("program", RIGHT)
@pytest.mark.filterwarnings("ignore")
def test_right_schedules(program: Callable[[Net], None], watched: IdleSchedules) -> None:
    """The optimizer steps, its groups are another's, its rate is copied, or nothing trains its parameters."""
    program(torch.nn.Linear(3, 1))
    assert watched.at_the_end() == []


@pytest.mark.parametrize(("program", "wanted"), WRONG.items())
@pytest.mark.filterwarnings("ignore")
def test_idle_schedules(program: Callable[[Net], None], wanted: tuple[str, int, bool], watched: IdleSchedules) -> None:
    """It is told once, with the way to the line that makes it."""
    program(torch.nn.Linear(3, 1))
    (one,) = watched.at_the_end()
    text = pathlib.Path(__file__).read_text()
    words, depth, is_later = wanted
    last = one["made_by"][-1]
    assert (last["line"], len(one["made_by"]), one["is_later"]) == (line_of(text, words), depth, is_later)
    assert one["stepping_by"][0]["function"] == program.__name__


SCRIPT = """import torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(GIVEN)
for _ in range(4):
    opt.zero_grad()
    net(torch.ones(3, 2)).pow(2).sum().backward()
    opt.step()
    sched.step(1.0)
"""
SCRIPTS = {
    "its own": (SCRIPT.replace("GIVEN", "opt"), None),
    "another": (SCRIPT.replace("GIVEN", "torch.optim.SGD(net.parameters(), lr=0.01)"), 4),
}


@pytest.mark.parametrize(("source", "line"), some_at_gate(SCRIPTS, ["another"]))
def test_a_program_that_ends_well(source: str, line: int | None, tmp_path: pathlib.Path) -> None:
    """Also where torch does not warn it is told, with the line that makes the schedule."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run(tmp_path, "train.py")
    first = done.report.findings[0] if done.report is not None else None
    told = (first.cause, first.culprits[0].line) if first is not None else None
    assert told == (("optimizer/scheduler-order", line) if line else None)
