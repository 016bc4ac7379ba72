"""An infinity that float16 makes by its range is told from one that a pole makes in any dtype."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import gradfix  # noqa: E402


def told(dtype: torch.dtype, infinite: Callable[[torch.Tensor], torch.Tensor]) -> tuple[str | None, str]:
    """The operation that the explanation of a guarded loss takes for an overflow of float16, and the first cause."""
    weight = torch.tensor([300.0, 400.0], requires_grad=True)
    try:
        with gradfix.trace():
            values = infinite(weight.to(dtype))
            loss = (values - values.mean()).sum()
            if not torch.isfinite(loss):
                raise ArithmeticError("loss nan at step 0")
    except ArithmeticError as error:
        report = gradfix.explain(error)
        fact = report.incident.fact("traced_float16_infinity")
        return fact.value if fact is not None else None, report.findings[0].cause
    pytest.fail("nothing was infinite")


def test_an_overflow_of_float16() -> None:
    """A square above 65504."""
    assert told(torch.float16, lambda x: x.pow(2)) == ("pow", "nan/low-precision-overflow")


@pytest.mark.parametrize("dtype", [torch.float16, pytest.param(torch.float32, marks=pytest.mark.slow)], ids=str)
def test_a_pole(dtype: torch.dtype) -> None:
    """The logarithm of zero is infinite whatever the range."""
    operation, cause = told(dtype, lambda x: (x - x).log())
    assert operation is None
    assert cause != "nan/low-precision-overflow"
