"""Data that holds infinity, as the logarithm of 0 leaves it, is told where it makes the loss infinite; a mask is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import gradfix  # noqa: E402

COUNTS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 8.0)
INFINITE = [float("-inf") if one == 0 else float(i) for i, one in enumerate(COUNTS)]


def told(data: Callable[[], tuple[Any, ...]], loss: Callable[[Any, Any], Any]) -> list[tuple[str, str, str]]:
    """Kind, operation and what is said where a table of two batches trains, of which the second is infinite."""
    with gradfix.trace() as seen:
        weight = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for rows in data():
            optimizer.zero_grad()
            loss(weight, rows).backward()
            optimizer.step()
    return [(one.kind, one.operation, one.says) for one in seen.lines]


def square(weight: Any, rows: Any) -> Any:
    return (weight - rows).square().mean()


def test_rows_of_a_table_that_came_with_it() -> None:
    """The backward of the square makes no infinity of its own."""
    ((_, operation, says),) = told(lambda: torch.tensor(INFINITE).split(4), square)
    assert (operation, says) == ("sub", "`sub` was given data that holds minus infinity")


def test_a_table_whose_logarithm_torch_took() -> None:
    """The line of the logarithm, though steps in order came between."""
    ((_, operation, _),) = told(lambda: torch.tensor(COUNTS).log().split(4), square)
    assert operation == "log"


def test_data_that_is_made_in_its_step() -> None:
    def rows() -> Any:
        yield torch.tensor(INFINITE)

    ((_, _, says),) = told(rows, square)
    assert says.endswith("was given data that holds minus infinity")


def test_features_whose_sum_is_nan() -> None:
    """Infinity times weights of both signs; the infinity was there before."""
    table = torch.tensor(INFINITE).view(4, 2)
    signs = torch.tensor([1.0, -1.0])
    with gradfix.trace() as seen:
        weight = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        (torch.stack((table @ (weight * signs), -(table @ (weight * signs)))).sum(0)).mean().backward()
        optimizer.step()
    assert [one.says.endswith("minus infinity") for one in seen.lines] == [True]


MASKS: dict[str, Callable[[], Any]] = {
    "of one finite value": lambda: torch.tensor([0.0, float("-inf"), 0.0, 0.0]),
    "of a fill": lambda: torch.arange(4.0).masked_fill(torch.tensor([False, True, False, False]), -torch.inf),
    "of a triangle": lambda: torch.full((4, 4), -torch.inf).triu(1)[1],
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_a_mask_is_no_data(mask: Callable[[], Any]) -> None:
    """A label that it forbids makes the loss infinite."""

    def data() -> tuple[Any, ...]:
        return (mask(),)

    found = told(data, lambda weight, rows: -(weight * torch.ones(4) + rows).log_softmax(0).sum())
    assert not any("data" in says for _, _, says in found)
    assert told(data, lambda weight, rows: (weight * torch.ones(4) + rows).softmax(0)[0]) == []
