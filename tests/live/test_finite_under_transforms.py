"""The first value that is not finite inside a transform of torch.func, where tensors are wrapped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from explainer.live.trace import arm as tracing  # noqa: E402

pytestmark = pytest.mark.torch
LARGE = torch.full((4, 3), 300.0)


def loss(weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    hot = (x @ weights).half()
    return (hot.square() - hot.square()).sum().float()


TRANSFORMS: dict[str, Callable[[], object]] = {
    "grad": lambda: torch.func.grad(loss)(torch.ones(3), LARGE),
    "vmap": lambda: torch.func.vmap(loss, (None, 0))(torch.ones(3), LARGE),
    "each sample": lambda: torch.func.vmap(torch.func.grad(loss), (None, 0))(torch.ones(3), LARGE),
    "jvp": lambda: torch.func.jvp(lambda w: loss(w, LARGE), (torch.ones(3),), (torch.ones(3),)),
}


@pytest.mark.parametrize("run", TRANSFORMS.values(), ids=TRANSFORMS)
def test_an_infinity_in_float16(run: Callable[[], object]) -> None:
    """Told as outside of a transform, with the same results as without a trace."""
    plain = run()
    tracer, undo = tracing.arm(torch)
    with undo:
        traced = run()
        bad = tracer.explain(None, "")["not_finite"]
    assert bad is not None
    assert (bad["kind"], bad["operation"], bad["narrow"]) == ("inf", "square", True)
    assert str(plain) == str(traced)


def test_what_is_finite() -> None:
    tracer, undo = tracing.arm(torch)
    with undo:
        torch.func.grad(loss)(torch.ones(3), torch.ones(4, 3))
        assert tracer.explain(None, "")["not_finite"] is None
