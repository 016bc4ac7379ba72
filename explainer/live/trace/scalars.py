"""Python numbers that were read from tensors, and the operations that took just such a number later: `x * scale.exp().item()`.

A number is known again by its digits. A round one, as 0.5, a program writes too: it is known where the line that takes it was
running when it was read, as a property of a module is that the line asks for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from .flow import Flow
from .place import Place, describe

MAX_READ = 1_000
MAX_TAKEN = 8  # operations of a number, the latest
_DIGITS = 6  # a number that is written has no more


class Scalars:
    """The numbers by their values, and by the operations that read them."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._read: dict[int, tuple[float, tuple[Place, ...]]] = {}
        self._taken: dict[float, deque[int]] = defaultdict(lambda: deque(maxlen=MAX_TAKEN))

    def saw_read(self, value: object, number: int, stack: tuple[Place, ...]) -> None:
        """An operation gave a value, while these lines were running."""
        if not isinstance(value, float):
            return
        if len(self._read) >= MAX_READ:
            self._read.clear()
            self._taken.clear()
        self._read[number] = value, stack
        self._taken[value]

    def saw_taken(self, value: float, number: int) -> None:
        """An operation is about to take a number."""
        if value in self._taken:
            self._taken[value].append(number)

    def takers(self, number: int) -> Iterator[int]:
        """The latest operations that took what an operation read, later than that."""
        value, stack = self._read.get(number, (None, ()))
        if value is None:
            return
        is_round = float(f"{value:.{_DIGITS}g}") == value
        for one in self._taken.get(value, ()):
            if one > number and not (is_round and not self._was_running(one, stack)):
                yield one

    def _was_running(self, number: int, stack: tuple[Place, ...]) -> bool:
        """Whether the line of an operation is one of a stack."""
        operation = self._flow.get(number)
        place = operation.place if operation is not None else None
        return place is not None and any(one[0] is place[0] and describe(one) == describe(place) for one in stack)
