"""Numbers that a loss is given as a term: in each step the same multiple of what was read from another term, `0.7 * log["link"]`.

A number does not tell where it comes from. But what is added in each step with one and the same factor of a value that was read
from a graph in that step, while that value changes, was computed from it: twice a ratio of two float64 is no chance.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .flow import Flow, Operation
from .place import Place

# A number that is taken off is a baseline more often than a term.
ADDS = frozenset(("add", "__add__", "__radd__", "__iadd__", "add_"))
LEAST = 2  # steps with that factor and another value
MAX_SUMS = 16
MAX_PAIRS = 4000
MAX_KEPT = 400
MAX_MOVES = 20
_EXACT = 1e-9
_HANDED_ON = frozenset(
    ("mul", "div", "neg", "__mul__", "__rmul__", "__truediv__", "true_divide", "mean", "sum", "squeeze", "view", "reshape", "float",
     "to", "cpu", "clone")
)  # fmt: skip

_Key = tuple[Place | None, int, Place | None, int]
"""A sum and a reading: each by its place, and as the how manieth there since the last backward."""


@dataclass(slots=True)
class Read:
    """A number that was read from what a graph computed, by the operation `number`; `base` is the term that it is the value of."""

    number: int
    operation: Operation
    value: float
    base: int


@dataclass(slots=True)
class _Pair:
    sum: Operation
    read: Operation
    factor: float
    value: float
    steps: int = 1


class Added:
    """Compares the numbers that losses are given with those that were read in the same step."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._pairs: dict[_Key, _Pair | None] = {}
        self._gone_back: deque[int] = deque(maxlen=MAX_KEPT)
        self._awaited: dict[int, list[_Key]] = {}

    def saw_sums(self, sums: Iterable[tuple[int, Operation, float]], reads: Iterable[Read]) -> None:
        """The sums of one loss that were given a number, and the numbers that were read since the last backward."""
        read_at, summed_at = Counter[Place | None](), Counter[Place | None]()
        known = []
        for one in reads:
            read_at[one.operation.place] += 1
            known.append((one, read_at[one.operation.place]))
        for number, operation, value in list(sums)[:MAX_SUMS]:
            summed_at[operation.place] += 1
            for one, index in known:
                key = operation.place, summed_at[operation.place], one.operation.place, index
                if one.number < number and (key in self._pairs or len(self._pairs) < MAX_PAIRS):
                    self._compare(key, operation, value, one)

    def saw_terms(self, numbers: Iterable[int]) -> None:
        """The terms of what a backward starts from: a term that has a backward of its own trains by that."""
        for base in {self.base(one) for one in numbers}:
            self._gone_back.append(base)
            for key in self._awaited.pop(base, ()):
                self._pairs[key] = None

    def told(self) -> Iterator[tuple[Operation, Operation]]:
        """The operations that read a term's value, and the sums that were given it."""
        for one in self._pairs.values():
            if one is not None and one.steps >= LEAST:
                yield one.read, one.sum

    def base(self, number: int) -> int:
        """The term whose value an operation hands on, scaled or reduced."""
        for _ in range(MAX_MOVES):
            operation = self._flow.get(number)
            with_graph = [one for one in operation.inputs if self._has_graph(one)] if operation is not None else []
            if operation is None or operation.name not in _HANDED_ON or len(with_graph) != 1:
                break
            number = with_graph[0]
        return number

    def _has_graph(self, number: int) -> bool:
        operation = self._flow.get(number)
        return operation is not None and operation.gave_grad

    def _compare(self, key: _Key, operation: Operation, value: float, read: Read) -> None:
        """Whether a number is the multiple of a value that it was in the steps before."""
        if not (value and read.value and math.isfinite(value) and math.isfinite(read.value)):
            return
        factor, before = value / read.value, self._pairs.get(key)
        is_other = key in self._pairs and (before is None or not math.isclose(factor, before.factor, rel_tol=_EXACT))
        if is_other or factor < 0 or read.base in self._gone_back:
            self._pairs[key] = None
            return
        self._awaited.setdefault(read.base, []).append(key)
        if len(self._awaited) > MAX_KEPT:
            del self._awaited[next(iter(self._awaited))]
        if before is None:
            self._pairs[key] = _Pair(operation, read.operation, factor, read.value)
        elif read.value != before.value:
            before.value, before.steps = read.value, before.steps + 1
