"""Parts of an expanded tensor that are written: all its rows are one row in memory, and each write changes them all."""

from __future__ import annotations

from typing import Any

from .place import Place

MAX_TOLD = 8


class Expanded:
    """The writes `x[i] = y` into a tensor with a stride of 0; torch refuses those that overlap within themselves alone."""

    def __init__(self) -> None:
        self._told: dict[Place, int] = {}

    def saw_write(self, tensor: Any, index: Any, number: int | None, place: Place | None) -> None:
        """A part of a tensor was written: `number` is the operation that made it, `place` the line that wrote."""
        if place is None or place in self._told or len(self._told) >= MAX_TOLD:
            return
        shared = [
            at
            for at, (length, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True))
            if not stride and length > 1
        ]
        if shared and number is not None and _selects(index, shared[0]):
            self._told[place] = number

    def told(self) -> list[tuple[int, Place]]:
        """The operation that made what was written, and the line that wrote it."""
        return [(number, place) for place, number in self._told.items()]


def _selects(index: Any, dimension: int) -> bool:
    """Whether an index takes one element of a dimension: what a mask or a list of indices picks may be the same in all rows."""
    parts = index if isinstance(index, tuple) else (index,)
    return len(parts) > dimension and all(
        isinstance(one, (int, slice)) and not isinstance(one, bool) for one in parts
    ) and isinstance(parts[dimension], int)  # fmt: skip
