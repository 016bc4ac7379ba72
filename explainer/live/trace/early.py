"""What was computed from a tensor before it required grad: a gradient with respect to it finds no way there."""

from __future__ import annotations

import weakref
from collections import deque
from itertools import islice
from typing import Any

from .flow import Flow, Operation

MAX_FLAGGED = 256
MAX_LOOKED_AT = 5_000


class Early:
    """The tensors whose flag was set after they were made, and what a failing `autograd.grad` was asked for."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._flagged: deque[tuple[weakref.ref[Any], int]] = deque(maxlen=MAX_FLAGGED)
        self._roots: list[weakref.ref[Any]] = []
        self._inputs: list[weakref.ref[Any]] = []

    def saw_flag(self, tensor: Any) -> None:
        """A tensor that did not require grad is about to."""
        if not tensor.requires_grad:
            self._flagged.append((weakref.ref(tensor), len(self._flow)))

    def saw_backward(self, roots: Any, inputs: Any) -> None:
        """Gradients of some tensors are asked for, with respect to others where these are given."""
        self._roots, self._inputs = _references(roots), _references(inputs)

    def told(self) -> tuple[Operation, Operation | None] | None:
        """The operation nearest to what is differentiated that took such a tensor too early, and the one that made that."""
        for tensor in (one() for one in self._inputs):
            at = next((at for one, at in self._flagged if tensor is not None and one() is tensor), None)
            if at is None:
                continue
            number = self._flow.maker(tensor)
            found = [
                (one, operation)
                for root in self._roots
                if (maker := self._flow.maker(root())) is not None
                for one, operation in islice(self._flow.upstream(maker), MAX_LOOKED_AT)
                if one < at and (number in operation.inputs if number is not None else id(tensor) in operation.leaves)
            ]
            if found:
                made = self._flow.get(number) if number is not None else None
                return max(found, key=lambda each: each[0])[1], made
        return None


def _references(tensors: Any) -> list[weakref.ref[Any]]:
    """Weak ones, so that no graph outlives its step; an edge of a graph is no tensor."""
    listed = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    return [weakref.ref(one) for one in listed if hasattr(one, "requires_grad")]
