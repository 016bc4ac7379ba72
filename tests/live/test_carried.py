"""The tracer names what ties two steps together, and a loss that nothing was put into."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.live.tracing import lines, shown, weight  # noqa: E402


def keep(bank: dict, value: torch.Tensor) -> None:
    bank["last"] = value * 2


def take(bank: dict) -> torch.Tensor:
    return bank["last"].sin()


def test_what_an_earlier_step_made_and_a_later_one_takes_up() -> None:
    """Both ends: where it was made for later, and where it came back; then the backward that used it up."""
    w, bank = weight(), {"last": torch.ones(3)}

    def step() -> None:
        for _ in range(2):
            hidden = take(bank) * w
            keep(bank, hidden)
            hidden.square().sum().backward()

    found = lines(step)
    assert shown(found) == [("carried", "mul", "keep"), ("taken", "sin", "take"), ("freed", "backward", "step")]


def test_a_loop_over_time_takes_up_its_own_step_too() -> None:
    """The line that takes up the old state runs on this step's as well: to cut there would cut the step's own graph."""
    w, state = weight(), [torch.ones(3)]

    def step() -> None:
        for _ in range(2):
            hidden = state[0]
            for _ in range(3):
                hidden = (hidden * w).sin()
            state[0] = hidden
            hidden.sum().backward()

    assert [one.kind for one in lines(step)] == ["freed"]


def test_what_was_made_once_for_all_steps_is_not_carried() -> None:
    """Each step takes it up on the same line: it is to be made anew, not cut."""
    w = weight()
    features = w.exp()

    def step() -> None:
        for _ in range(2):
            (features * 2).sum().backward()

    assert [one.kind for one in lines(step)] == ["freed"]


def test_a_loss_of_nothing() -> None:
    """A constant is named where it is made; a number that was logged behind the last backward has no part in it."""
    w = weight()

    def empty(rows: torch.Tensor) -> torch.Tensor:
        return torch.zeros(()) if not len(rows) else (rows * w).sum()

    def step() -> None:
        logged = []
        for count in (2, 0):
            loss = empty(torch.ones(count, 3))
            loss.backward()
            logged.append(loss.item())

    assert shown(lines(step)) == [("constant", "zeros", "empty")]
