"""What is kept of a gradient tells two gradients apart, and disturbs nothing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from explainer.live.gradient import MAX_WHOLE, norms_of, summarise, values_of  # noqa: E402
from explainer.model.verification import FirstStep, Gradient, ProcessReport  # noqa: E402
from explainer.verification.difference import compare_runs  # noqa: E402

pytestmark = pytest.mark.torch


def keep(gradient, whole: int = MAX_WHOLE, factor: float = 1.0) -> Gradient:
    told = summarise("w", gradient, gradient.shape, factor=factor, whole=whole)
    return Gradient(**{key: tuple(value) if isinstance(value, list) else value for key, value in told.items()})


def verdict(one: Gradient, other: Gradient) -> str:
    runs = [[ProcessReport(pid=1, first=(FirstStep(optimizer="0 SGD", gradients=(each,)),))] for each in (one, other)]
    return compare_runs("report", *runs).verdict


def large(seed: int = 0):
    return torch.randn(700, 1900, generator=torch.Generator().manual_seed(seed))


CHANGED = {
    "rows in another order": lambda one: one.flip(0),
    "columns in another order": lambda one: one.flip(1),
    "another sign": lambda one: -one,
    "one row gone": lambda one: one * (torch.arange(700) != 3)[:, None],
    "a little noise": lambda one: one + 1e-3 * large(1),
}
EQUAL = {
    "another layout": lambda one: one.t().contiguous().t(),
    "rounding": lambda one: one * (1 + 1e-6 * large(1)),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED.keys())
def test_a_large_gradient_that_changed(change) -> None:
    """Projections see what norm and mean do not."""
    assert verdict(keep(large()), keep(change(large()))) == "different"


@pytest.mark.parametrize("change", EQUAL.values(), ids=EQUAL.keys())
def test_a_large_gradient_that_did_not(change) -> None:
    """The same directions are taken in every call, and rounding stays below the tolerance."""
    assert verdict(keep(large()), keep(change(large()))) == "same"


def test_little_is_kept_of_a_large_one() -> None:
    """Norm, mean, largest value and eight projections, in double precision."""
    kept = keep(large())
    assert (len(kept.values), len(kept.projections)) == (0, 8)
    assert kept.norm == pytest.approx(float(large().double().norm()), rel=1e-12)
    assert kept.largest == float(large().abs().max())


def test_the_size_of_a_difference_is_seen() -> None:
    """The projections of a difference are as large as its norm, on the average of directions."""
    kept = keep(1e-2 * large(5)).projections
    assert (sum(one * one for one in kept) / 8) ** 0.5 == pytest.approx(1e-2 * float(large(5).norm()), rel=0.6)


def test_random_numbers_of_the_program_stay() -> None:
    """Directions come from a generator of their own."""
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    keep(large())
    assert torch.equal(torch.rand(2), expected)


KINDS = {
    "sparse": (
        torch.sparse_coo_tensor([[1, 1]], [[1.0, 2.0], [2.0, 2.0]], (3, 2)),
        (0.0, 0.0, 3.0, 4.0, 0.0, 0.0),
        5.0,
    ),
    "complex": (torch.tensor([3 + 4j]), (3.0, 4.0), 5.0),
    "bfloat16": (torch.tensor([3.0, 4.0], dtype=torch.bfloat16), (3.0, 4.0), 5.0),
    "a number": (torch.tensor(-2.0), (-2.0,), 2.0),
    "near the largest float32": (
        torch.tensor([3e38, 0.0]),
        (float(torch.tensor(3e38)), 0.0),
        float(torch.tensor(3e38)),
    ),
    "empty": (torch.zeros(0), (), 0.0),
}


@pytest.mark.parametrize(("gradient", "values", "norm"), KINDS.values(), ids=KINDS.keys())
def test_kinds_of_gradients(gradient, values: tuple[float, ...], norm: float) -> None:
    """Small ones are kept whole, whatever they are made of."""
    kept = keep(gradient)
    assert (kept.values, kept.norm) == (values, norm)
    assert norms_of([values_of(gradient), torch.ones(4)]) == [norm, 2.0]


def test_none_is_told() -> None:
    """A parameter without a gradient is told with its shape."""
    assert summarise("w", None, (2, 3), factor=1.0, whole=10) == {"name": "w", "shape": [2, 3], "given": False}


def test_the_loss_scale_is_taken_off() -> None:
    """A fused optimizer leaves that to itself."""
    assert keep(torch.tensor([8.0]), factor=0.25).values == (2.0,)
    assert keep(large(), factor=0.5).projections == tuple(one / 2 for one in keep(large()).projections)
