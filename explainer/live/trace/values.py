"""What a checkpointed segment computes, first and again: shapes that agree hide other values, and gradients of another function.

Norms rather than copies: one number an operation, left on its device, read once a step.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .finite import EMPTY, VIEWS, numbers_of

MAX_PAIRS = 20_000
# Kernels that are not deterministic differ by rounding; what a segment does otherwise differs by far more.
TOLERANCE, NARROW_TOLERANCE = 1e-4, 1e-2


@dataclass(frozen=True, slots=True)
class Computed:
    """What an operation of a first pass gave: its norm, its number in the flow, and what it read that nobody computed."""

    norm: Any
    number: int
    leaves: tuple[weakref.ref[Any], ...]


@dataclass(frozen=True, slots=True)
class Parting:
    """An operation that gave other values in the replay: its name, place and number there, and what it was in the first pass."""

    owner: Any
    name: str
    place: Any
    number: int
    first: Computed


class Values:
    """The norms of what segments compute, and where those of a replay are others."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._below = torch._C._AutoDispatchBelowAutograd  # noqa: SLF001 - a norm that leaves no node behind
        self._functorch = torch._C._functorch.peek_interpreter_stack  # noqa: SLF001 - its tensors must not outlive a transform
        self._types = (torch.Tensor, torch.nn.Parameter)
        self._pairs: deque[tuple[Parting, Any, bool]] = deque(maxlen=MAX_PAIRS)

    def computed(self, name: str, number: int, outputs: list[Any], tensors: list[Any]) -> Computed | None:
        """What an operation of a first pass gave; None where there is nothing to compare."""
        norm = self._norm(name, outputs)
        if norm is None:
            return None
        return Computed(norm, number, tuple(weakref.ref(one) for one in tensors if one.grad_fn is None))

    def again(self, parting: Parting, outputs: list[Any]) -> None:
        """The same operation of a replay: to be compared at the end of the step."""
        norm = self._norm(parting.name, outputs)
        if norm is not None and norm.device == parting.first.norm.device:
            self._pairs.append((parting, norm, outputs[0].element_size() < 4))

    def partings(self) -> Iterator[Parting]:
        """Those that gave other values since this was last asked, in the order of time. Waits for the device."""
        pairs = list(self._pairs)
        self._pairs.clear()
        with self._torch._C.DisableTorchFunction():  # noqa: SLF001 - no operation of the program
            before_all = numbers_of(self._torch, [one.first.norm for one, _, _ in pairs])
            after_all = numbers_of(self._torch, [norm for _, norm, _ in pairs])
        for (parting, _, is_narrow), before, after in zip(pairs, before_all, after_all, strict=True):
            # Comparisons with NaN are false: values that are not finite are another story.
            if abs(before - after) > (NARROW_TOLERANCE if is_narrow else TOLERANCE) * max(before, after):
                yield parting

    def _norm(self, name: str, outputs: list[Any]) -> Any:
        if name in EMPTY or name in VIEWS or not outputs:
            return None
        one = outputs[0]
        if type(one) not in self._types or one.is_meta or not one.is_floating_point() or not one.numel():
            return None
        if one.layout is not self._torch.strided or self._functorch() is not None:
            return None
        if one.is_cuda and self._torch.cuda.is_current_stream_capturing():
            return None
        with self._torch._C.DisableTorchFunction(), self._below():  # noqa: SLF001
            return self._torch.linalg.vector_norm(
                one, dtype=self._torch.promote_types(one.dtype, self._torch.float32)
            ).float()
