"""What the live objects of a process that nobody watched say of its steps, and of tables that their lookups write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from explainer.live.crash import look  # noqa: E402
from explainer.live.made_steps import living, made_steps  # noqa: E402
from explainer.verification.live_report import facts_of  # noqa: E402

OPTIMIZERS = {
    "Adam": (lambda p: torch.optim.Adam(p), 0, 2),
    "SGD with momentum": (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), 0, None),
    "SGD": (lambda p: torch.optim.SGD(p, lr=0.1), None, None),
    "Adagrad": (lambda p: torch.optim.Adagrad(p), 0, 2),
    "RMSprop": (lambda p: torch.optim.RMSprop(p), 0, 2),
}


@pytest.mark.parametrize(("make", "before", "after"), OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_steps(make: Callable, before: int | None, after: int | None) -> None:
    """None before the first, then their number, where the optimizer keeps it; nothing where it keeps none."""
    layer = nn.Linear(2, 1)
    optimizer = make(layer.parameters())
    assert made_steps(torch, [optimizer]) == before
    for _ in range(2):
        layer(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert made_steps(torch, [optimizer]) == after
    assert optimizer in list(living(torch))


def test_no_optimizer_and_one_that_says_nothing() -> None:
    """Of two, the one that keeps nothing leaves it open."""
    assert made_steps(torch, []) is None
    layer = nn.Linear(2, 1)
    both = [torch.optim.Adam(layer.parameters()), torch.optim.SGD(layer.parameters(), lr=0.1)]
    assert made_steps(torch, both) is None


def told(max_norm: float | None) -> dict[str, str]:
    table = nn.Embedding(4, 3, max_norm=max_norm)
    scores = torch.ones(1, 3) @ table.weight.t()
    with torch.no_grad():
        table.weight.mul_(1.0)
    loss = scores.sum() + table(torch.tensor([1])).sum() + (table.weight * table.weight).sum()
    kept = table.weight * table.weight
    with torch.no_grad():
        table.weight.mul_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as failed:
        (loss + kept.sum()).backward()
    return dict(facts_of(look(failed.value)))


def test_a_table_that_its_lookup_writes() -> None:
    """It is named where its weight is what moved."""
    assert told(1.0)["live_renormalised"] == "Embedding"
    assert "live_renormalised" not in told(None)
