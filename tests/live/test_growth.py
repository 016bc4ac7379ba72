"""Losses that grow out of proportion before they overflow: training that diverges."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from explainer.live.trace import arm as tracing  # noqa: E402

pytestmark = pytest.mark.torch


def grown(rate: float, steps: int) -> tuple[float, float] | None:
    """What is told of a quadratic that is walked down at a rate: it diverges above 1."""
    tracer, undo = tracing.arm(torch)
    with undo:
        weight = torch.nn.Parameter(torch.ones(4))
        optimizer = torch.optim.SGD([weight], lr=rate)
        for _ in range(steps):
            optimizer.zero_grad()
            weight.square().sum().backward()
            optimizer.step()
        return tracer.explain(None, "loss is inf")["grown"]


def test_a_diverging_loss() -> None:
    """The least of the latest losses, and the last one."""
    told = grown(5.0, 8)
    assert told is not None
    least, last = told
    assert last > 1000 * least


@pytest.mark.parametrize(("rate", "steps"), [(0.1, 8), (1.0, 8), (5.0, 2)], ids=["falls", "stands", "too few"])
def test_losses_that_tell_nothing(rate: float, steps: int) -> None:
    """Nothing is told of a course that does not rise, or is none yet."""
    assert grown(rate, steps) is None


def test_a_loss_that_explodes_at_once() -> None:
    """Two losses are enough where the second is a million times the first."""
    told = grown(1000.0, 2)
    assert told is not None
    assert told[0] == 4.0


def test_a_loss_that_was_nothing_for_a_step() -> None:
    """From 0 to a usual loss no factor tells anything."""
    tracer, undo = tracing.arm(torch)
    with undo:
        for value in (12.0, 0.0, 11.0):
            (torch.ones(1, requires_grad=True) * value).sum().backward()
        assert tracer.explain(None, "")["grown"] is None


def test_what_comes_behind_the_first_nan() -> None:
    """A run that goes on for long with NaN still tells how it came to that."""
    assert grown(1e12, 200) is not None


def test_derivatives_within_a_loss() -> None:
    """What `autograd.grad` starts from is no loss: the course is that of the losses alone."""
    tracer, undo = tracing.arm(torch)
    with undo:
        for value in (1.0, 10.0, 1e3, 1e6, 1e10):
            x = torch.ones(1, requires_grad=True)
            (slope,) = torch.autograd.grad((x * value).sum() * 0.0, x, create_graph=True)
            ((x * value).sum() + slope.sum()).backward()
        grown_to = tracer.explain(None, "loss is inf")["grown"]
    assert grown_to is not None
    assert grown_to[1] == 1e10


def test_a_small_loss_may_grow() -> None:
    """From next to nothing to a usual loss is no divergence."""
    tracer, undo = tracing.arm(torch)
    with undo:
        for value in (1e-4, 2e-4, 1e-4, 3e-4, 0.5):
            (torch.ones(1, requires_grad=True) * value).sum().backward()
        assert tracer.explain(None, "")["grown"] is None
