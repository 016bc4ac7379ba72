"""Numbers that a loss is given as a term: in each step the same multiple of what was read from another term, `0.7 * log["link"]`.

A number does not tell where it comes from. But what is added in each step with one and the same factor of a value that was read
from a graph in that step, while that value changes, was computed from it: twice a ratio of two float64 is no chance.
A number of several readings, or one that a schedule scales, shows no such factor: for it, source has to show the way.
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
MAX_GUESSES = 40
_EXACT = 1e-9
_HANDED_ON = frozenset(
    ("mul", "div", "neg", "__mul__", "__rmul__", "__truediv__", "true_divide", "mean", "sum", "squeeze", "view", "reshape", "float",
     "to", "cpu", "clone")
)  # fmt: skip

_Key = tuple[Place | None, int, Place | None, int]
"""A sum and a reading: each by its place, and as the how manieth there since the last backward."""
_Lines = tuple[Place | None, Place | None]
"""A sum and its readings, by their places."""


@dataclass(slots=True)
class Read:
    """A number that was read from what a graph computed, by the operation `number`; `base` is the term that it is the value of.

    `is_part` says that the term is one of the loss that the sums are of.
    """

    number: int
    operation: Operation
    value: float
    base: int
    is_part: bool = False


@dataclass(slots=True)
class _Pair:
    sum: Operation
    read: Operation
    factor: float
    value: float
    steps: int = 1


@dataclass(slots=True)
class _Guess:
    sum: Operation
    read: Operation
    value: float
    of: float
    steps: int = 1


class Added:
    """Compares the numbers that losses are given with those that were read in the same step."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._pairs: dict[_Key, _Pair | None] = {}
        self._guesses: dict[_Lines, _Guess | None] = {}
        self._gone_back: deque[int] = deque(maxlen=MAX_KEPT)
        self._awaited: dict[int, list[_Key]] = {}
        self._guessed: dict[int, list[_Lines]] = {}

    def saw_sums(self, sums: Iterable[tuple[int, Operation, float]], reads: Iterable[Read]) -> None:
        """The sums of one loss that were given a number, and the numbers that were read since the last backward."""
        sums, reads = list(sums)[:MAX_SUMS], list(reads)
        self._guess(sums, reads)
        read_at, summed_at = Counter[Place | None](), Counter[Place | None]()
        known = []
        for one in reads:
            read_at[one.operation.place] += 1
            known.append((one, read_at[one.operation.place]))
        for number, operation, value in sums:
            summed_at[operation.place] += 1
            for one, index in known:
                key = operation.place, summed_at[operation.place], one.operation.place, index
                if one.number < number and not one.is_part and (key in self._pairs or len(self._pairs) < MAX_PAIRS):
                    self._compare(key, operation, value, one)

    def saw_terms(self, numbers: Iterable[int]) -> None:
        """The terms of what a backward starts from: a term that has a backward of its own trains by that."""
        for base in {self.base(one) for one in numbers}:
            self._gone_back.append(base)
            for key in self._awaited.pop(base, ()):
                self._pairs[key] = None
            for lines in self._guessed.pop(base, ()):
                self._guesses[lines] = None

    def told(self) -> Iterator[tuple[Operation, Operation]]:
        """The operations that read a term's value, and the sums that were given it."""
        for one in self._pairs.values():
            if one is not None and one.steps >= LEAST:
                yield one.read, one.sum

    def guessed(self) -> Iterator[tuple[Operation, Operation]]:
        """As `told`, where number and value change from step to step and no factor shows that one was computed from the other."""
        for one in self._guesses.values():
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

    def _guess(self, sums: list[tuple[int, Operation, float]], reads: list[Read]) -> None:
        """Count the steps in which a sum was given another number, and a line before it had read another value."""
        here: dict[_Lines, _Guess | None] = {}
        for number, operation, value in sums:
            for one in reads:
                key = operation.place, one.operation.place
                if one.number > number or not (value and math.isfinite(value) and math.isfinite(one.value)):
                    continue
                is_over = one.is_part or one.base in self._gone_back
                here[key] = (
                    None
                    if is_over or here.get(key, one) is None
                    else _Guess(operation, one.operation, value, one.value)
                )
                self._guessed.setdefault(one.base, []).append(key)
        while len(self._guessed) > MAX_KEPT:
            del self._guessed[next(iter(self._guessed))]
        for key, guess in here.items():
            before = self._guesses.get(key, guess)
            if guess is None or before is None:
                self._guesses[key] = None
            elif len(self._guesses) < MAX_GUESSES and before is guess:
                self._guesses[key] = guess
            elif key in self._guesses and guess.value != before.value and guess.of != before.of:
                before.value, before.of, before.steps = guess.value, guess.of, before.steps + 1

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
