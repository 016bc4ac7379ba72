"""Checkpointed segments whose replay draws other random numbers than the first pass: shapes agree, and gradients do not."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
checkpointing = pytest.importorskip("torch.utils.checkpoint")

from explainer.live import raised  # noqa: E402
from explainer.live.trace import arm as tracing  # noqa: E402
from tests.live.tracing import lines, shown  # noqa: E402

pytestmark = pytest.mark.torch


def net(rate: float = 0.5) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(rate), torch.nn.Linear(4, 1))


def step(model: torch.nn.Module, **how: bool) -> Callable[[], None]:
    def train() -> None:
        for _ in range(2):
            x = torch.randn(8, 4, requires_grad=True)
            checkpointing.checkpoint(model, x, **how).sum().backward()

    return train


@pytest.mark.parametrize("reentrant", [False, True])
def test_other_places_are_dropped(reentrant: bool) -> None:  # noqa: FBT001
    """The line that checkpoints, once."""
    found = lines(step(net(), use_reentrant=reentrant, preserve_rng_state=False), fails=False)
    assert shown(found) == [("redrawn", "checkpoint", "train")]


def test_the_gradients_are_other_ones() -> None:
    """What the line claims, measured: the same loss, and the gradient of another mask."""
    found = []
    for restores in (True, False):
        torch.manual_seed(0)
        model, x = net(), torch.randn(64, 4, requires_grad=True)
        torch.manual_seed(1)
        loss = checkpointing.checkpoint(model, x, use_reentrant=False, preserve_rng_state=restores).sum()
        loss.backward()
        found.append((loss.item(), model[2].weight.grad.clone()))
    assert found[0][0] == found[1][0]
    assert not torch.allclose(found[0][1], found[1][1])


RIGHT = {
    "restored": (0.5, {"use_reentrant": False}),
    "restored by reentry": (0.5, {"use_reentrant": True}),
    "nothing is drawn": (0.0, {"use_reentrant": False, "preserve_rng_state": False}),
}


@pytest.mark.parametrize(("rate", "how"), RIGHT.values(), ids=RIGHT)
def test_the_same_numbers(rate: float, how: dict[str, bool]) -> None:
    """Nothing is told."""
    model = net(rate) if rate else torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    assert lines(step(model, **how), fails=False) == ()


def test_the_end_of_a_replay_is_no_failure() -> None:
    """torch ends a replay that has what it needs by an exception, within an operation: the run has not failed by that."""
    noted: list[Exception] = []
    recorder = types.SimpleNamespace(note=lambda error, where: noted.append(error))
    tracer, undo = tracing.arm(torch)
    tracer.on_error = raised.of_operations(recorder)
    with undo:
        step(net(), use_reentrant=False)()
        with pytest.raises(RuntimeError):
            torch.ones(2, 3) @ torch.ones(2, 3)
    assert [type(one).__name__ for one in noted] == ["RuntimeError"]
