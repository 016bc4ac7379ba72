"""What a program bound to names of its own before it is traced."""

from __future__ import annotations

import functools
import gc

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint as early  # noqa: E402 - bound before anything is traced

from tests.live.tracing import lines, weight  # noqa: E402


@pytest.mark.slow
def test_a_checkpoint_bound_to_a_name_before_the_trace() -> None:
    """`from torch.utils.checkpoint import checkpoint`, a partial of it and a closure over it are traced as well, and come back."""
    gc.unfreeze()  # what holds the name is older than the test
    calls: list[int] = []
    held = early
    partial = functools.partial(early, use_reentrant=False)

    def segment(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x.sin() if len(calls) == 1 else x.double().cos()

    for call in (
        lambda *args: early(*args, use_reentrant=False),
        lambda *args: held(*args, use_reentrant=False),
        partial,
    ):
        calls.clear()
        told = lines(lambda call=call: call(segment, weight()).sum().backward())
        found = [one for one in told if one.kind == "parted"]
        assert [(one.operation, one.function) for one in found] == [("double", "segment")]
    assert early is held is partial.func is torch.utils.checkpoint.checkpoint
