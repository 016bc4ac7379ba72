"""What the rows of a log show of its course."""

from __future__ import annotations

import pytest

from explainer.match.metrics import observe
from explainer.model.incident import MetricRow


def rows(*losses: float) -> list[MetricRow]:
    return [MetricRow(values=(("loss", one),)) for one in losses]


@pytest.mark.parametrize(
    ("losses", "is_absurd", "rises"),
    [
        ((42.59, 369.2, 1.344e28), False, True),  # what is printed now and then, with no row of the end
        ((42.59, 41.0, 40.2), True, False),
        ((1e30, 1e30), True, False),
        ((2.1, 8.0, 30.0), False, False),
        ((0.001, 0.9), False, False),
        ((42.59,), False, False),
    ],
)
def test_a_first_loss_and_what_came_of_it(losses: tuple[float, ...], is_absurd: bool, rises: bool) -> None:  # noqa: FBT001
    """A loss that ends a hundredfold was no fault of the first forward."""
    said = observe(rows(*losses))
    assert ("first-row-loss-absurd" in said) == is_absurd
    assert ("loss-rises-before-nan" in said) == rises
