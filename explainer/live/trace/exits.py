"""Values that leave torch for NumPy or plain Python and come back: what is made of them was computed from a tensor."""

from __future__ import annotations

from collections import deque
from itertools import takewhile

from .place import Place

WAYS_OUT = frozenset(("item", "tolist", "numpy", "__float__", "__array__", "__complex__"))
WAYS_IN = frozenset(("tensor", "as_tensor", "from_numpy", "frombuffer"))
ON_THE_WAY = frozenset(("detach", "cpu", "float", "double", "contiguous", "to", "data", "squeeze"))
MAX_KEPT = 256
Stack = tuple[Place, ...]
"""The program's frames, outermost first: the code of each, and where in it."""


class Exits:
    """The latest ways out of torch, as long as torch has computed nothing since: in between, NumPy works.

    A function that lets a value out, itself or in what it calls, and lets one in further down, has computed the one from the
    other. Where the way in stands above the way out, a loop has come round to its next batch.
    """

    def __init__(self) -> None:
        self._left: deque[tuple[int, Stack]] = deque(maxlen=MAX_KEPT)

    def saw(self, name: str) -> None:
        """An operation of torch that lets nothing out: unless it is on the way, what left before it is over."""
        if self._left and name not in ON_THE_WAY:
            self._left.clear()

    def left(self, number: int, stack: Stack) -> None:
        """An operation let values out."""
        self._left.append((number, stack))

    def came_back(self, stack: Stack) -> tuple[int, ...]:
        """The operations whose values are made a tensor of here."""
        return tuple(number for number, left in self._left if _is_before(left, stack))


def _is_before(left: Stack, entered: Stack) -> bool:
    """Whether the innermost function that both happened in went from the one down to the other."""
    shared = list(takewhile(lambda pair: pair[0][0] is pair[1][0], zip(left, entered, strict=False)))
    return not shared or shared[-1][0][1] <= shared[-1][1][1]
