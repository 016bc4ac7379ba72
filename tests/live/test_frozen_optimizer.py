"""An optimizer whose turn it is and that is frozen, and others that are frozen for the time being."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("steps", "frozen", "expected"),
    [
        ((1, 1), (True, False), True),
        ((3,), (True,), True),
        ((0,), (True,), False),
        ((1, 0), (True, False), False),  # the critic, while the generator makes its first step
        ((2, 1), (True, False), False),
        ((1, 2), (True, False), True),
        ((1, 9), (True, False), False),  # an earlier stage
        ((1, 1), (False, False), False),
    ],
)
@pytest.mark.parametrize("is_counted", [True, False])
def test_whose_turn_it_is(
    steps: tuple[int, ...], frozen: tuple[bool, ...], expected: bool, is_counted: bool, monkeypatch
) -> None:
    """As a run counts the steps, and as Adam's own state tells them."""
    torch = pytest.importorskip("torch")
    from explainer.live import frozen_optimizer

    optimizers, counts = [], {}
    for count, is_frozen in zip(steps, frozen, strict=True):
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.Adam([weight])
        for _ in range(count):
            weight.grad = torch.ones(2)
            optimizer.step()
        weight.requires_grad_(not is_frozen)
        optimizers.append(optimizer)
        counts[optimizer] = count
    monkeypatch.setattr(frozen_optimizer, "living", lambda _: optimizers)
    assert frozen_optimizer.is_due_and_frozen(torch, counts.get if is_counted else None) is expected
