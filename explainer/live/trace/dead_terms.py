"""Terms of a loss that have no graph, though what trains went into them: they change its value and no gradient."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from .added import ADDS, Added, Read
from .exits import Stack
from .flow import Flow, Operation
from .place import Place, describe

MAX_LOOKED_AT = 200
MAX_BEHIND = 2_000
MAX_KEPT = 16
_TAKES_OFF = frozenset(("sub", "rsub", "__sub__", "__rsub__", "__isub__", "sub_"))
_ADDS = ADDS | {"stack"}
_SUMS = _ADDS | _TAKES_OFF
GIVEN = ADDS | _TAKES_OFF | {"tensor", "as_tensor"}
"""Calls that may be given a number which becomes a term."""
_SCALED = frozenset(
    ("mul", "div", "neg", "__mul__", "__rmul__", "__truediv__", "true_divide", "mul_", "div_", "squeeze")
)
# What they reduce is a list of terms only where it was stacked: in `(new - old).mean()` what is old is meant to be a constant.
_REDUCED = frozenset(("sum", "mean"))
_LINEAR = _SUMS | _SCALED | _REDUCED
# What a program cuts in so many words is meant; but a term that is computed from `.data` of weights alone can mean nothing.
_ON_PURPOSE = frozenset(("detach", "detach_", "data"))


class DeadTerms:
    """Looks at the sum that each backward starts from."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._found: dict[tuple[Place | None, str], Operation] = {}
        self._left: deque[tuple[int, Stack, object]] = deque(maxlen=MAX_LOOKED_AT)
        self._given: dict[int, float] = {}
        self._taken: deque[float] = deque(maxlen=MAX_LOOKED_AT)
        self._added = Added(flow)

    def left(self, number: int, stack: Stack, value: object) -> None:
        """An operation gave the program a number or an array."""
        self._left.append((number, stack, value))

    def given(self, name: str, arguments: tuple[Any, ...]) -> None:
        """The last operation may have been given a number, to be added, to be taken off, or to be made a tensor."""
        value = next((one for one in arguments if isinstance(one, float)), None)
        number = len(self._flow) - 1
        last = self._flow.get(number) if value is not None else None
        if value is None or last is None or last.name != name:
            return
        if name in _TAKES_OFF:
            self._taken.append(value)
            return
        with suppress(Exception):  # a tensor of a kind of its own may refuse any question
            if all(one.numel() == 1 for one in arguments if hasattr(one, "numel")):
                self._given[number] = value
                if len(self._given) > MAX_LOOKED_AT:
                    del self._given[next(iter(self._given))]

    def saw_backward(self, root: Any) -> None:
        """A backward is about to start at a tensor; of more than one value there is no sum to look at."""
        number = self._flow.maker(root) if root.numel() == 1 and len(self._found) < MAX_KEPT else None
        if number is not None:
            self._look(number)
            self._look_by_sample(number)
        self._left.clear()  # what an earlier round has read is part of no sum of a later one
        self._given.clear()
        self._taken.clear()

    def _look(self, number: int) -> None:
        queue, seen = [number], {number}
        while queue and len(seen) < MAX_LOOKED_AT:
            current = queue.pop()
            operation = self._flow.get(current)
            if operation is None or not operation.gave_grad:
                continue
            for one in self._terms_of(current, operation):
                if one not in seen:
                    seen.add(one)
                    queue.append(one)
        self._look_at_given(seen)

    def _look_by_sample(self, number: int) -> None:
        """A penalty from `autograd.grad` that is added sample by sample, before the mean: `(loss + gamma * penalty).mean()`.

        What else is constant there may be a target; a gradient that is added to a loss is none.
        """
        queue, seen = [number], {number}
        while queue and len(seen) < MAX_LOOKED_AT:
            operation = self._flow.get(queue.pop())
            if operation is None or operation.name not in _LINEAR:
                continue
            for one in operation.inputs:
                below = self._flow.get(one)
                if below is not None and below.gave_grad and one not in seen:
                    seen.add(one)
                    queue.append(one)
                elif below is not None and not below.gave_grad and operation.name in _ADDS:
                    cuts = list(self._cuts_behind(one))
                    if cuts and all(each.name == "grad" for each in cuts):
                        self._keep(cuts, is_added=True)

    def _look_at_given(self, looked_at: set[int]) -> None:
        """Numbers that are added further down than they were read, as 0-dim tensors or as they are."""
        self._added.saw_terms(looked_at)
        sums = [
            (one, made) for one in sorted(looked_at) if (made := self._flow.get(one)) is not None and made.name in _ADDS
        ]
        given = [
            (number, one, self._given[each])
            for number, one in sums
            for each in (number, *one.inputs)
            if each in self._given and (each == number or each not in looked_at)
        ]
        if given:
            parts = looked_at | {self._added.base(one) for one in looked_at}
            reads = [*self._reads(parts)]
            # `(x - m).exp().sum().log() + m`: what is taken off before is no term.
            if not {one.value for one in reads} & set(self._taken):
                self._added.saw_sums(given, reads)

    def _reads(self, parts: set[int]) -> Iterator[Read]:
        """The numbers that were read of what a graph has computed, of terms of the loss too; a list by its sum."""
        for number, _, value in self._left:
            one = self._flow.get(number)
            is_read = one is not None and one.took_grad and one.grad_mode and len(one.inputs) == 1 and not one.leaves
            if isinstance(value, list) and value and all(isinstance(each, float) for each in value):
                value = math.fsum(value)
            if one is not None and is_read and isinstance(value, float) and not self._is_multiplier(one.inputs[0]):
                base = self._added.base(one.inputs[0])
                yield Read(number, one, value, base, is_part=base in parts)

    def _is_multiplier(self, number: int) -> bool:
        """Whether a value is made of parameters of one value alone: `log_alpha.exp()`, which a loss of its own trains."""
        made = [one for _, one in islice(self._flow.upstream(number), MAX_KEPT)]
        leaves = [self._flow.leaf(each) for one in made for each in one.leaves]
        is_whole = len(made) < MAX_KEPT and bool(leaves)
        return is_whole and all(one is not None and one.numel() == 1 for one in leaves)

    def _terms_of(self, number: int, operation: Operation) -> Iterator[int]:
        """What an operation sums up or scales, where that has a graph; what it sums up and has none is looked at."""
        is_sum = operation.name in _SUMS
        if is_sum:
            self._look_at_number(number, operation)
        for one in operation.inputs:
            below = self._flow.get(one)
            if below is not None and below.gave_grad:
                is_listed = operation.name in _REDUCED and below.name == "stack"
                if is_sum or operation.name in _SCALED or is_listed:
                    yield one
            elif is_sum:
                self._keep(list(self._cuts_behind(one)), is_added=operation.name in _ADDS)

    def _look_at_number(self, number: int, operation: Operation) -> None:
        """`loss + 0.1 * penalty.item()`: what is added is a number by then, read there or in what that line calls."""
        if len(operation.inputs) + len(operation.leaves) > 1:
            return
        place = operation.place
        if place is None:
            return
        here = describe(place)
        summed = self._flow.get(operation.inputs[0]) if operation.inputs else None
        parts = {one for one, _ in self._flow.upstream(operation.inputs[0])} if operation.inputs else set()
        for one, stack, _ in self._left:
            read = self._flow.get(one)
            # A part of the sum, or the sum, that is read besides was only told to a log: `1 - logged(loss)`.
            if one > number or read is None or not read.took_grad or parts & set(read.inputs):
                continue
            # The code first, which is cheap: a step may read hundreds of numbers, from deep in a stack.
            at = next((at for at, each in enumerate(stack) if each[0] is place[0] and describe(each) == here), None)
            # What the same call gave the sum as a tensor may be logged there with others: `measured(x) + 1.0`.
            called = {code for code, _ in stack[at + 1 :]} if at is not None else set()
            if at is not None and (summed is None or summed.place is None or summed.place[0] not in called):
                self._keep([read])

    def _keep(self, cuts: list[Operation], *, is_added: bool = False) -> None:
        """Remember what cuts a term off, unless any of it was meant.

        What runs with grad mode off is meant, unless it is given what the graph has computed and becomes a term by itself.
        """
        off = [one for one in cuts if one.off is not None]
        if off and is_added and all(one.grad_mode or one.off is not None for one in cuts):
            cuts = [one for one in cuts if one.grad_mode or self._is_given(one)]
            if any(one.off is not None for one in cuts) and not any(one.name in _ON_PURPOSE for one in cuts):
                for one in cuts:
                    self._found.setdefault((one.place, one.name), one)
            return
        cuts = [one for one in cuts if not (one.name in _ON_PURPOSE and self._is_of_input(one))]
        is_meant = any(one.name in _ON_PURPOSE for one in cuts) and not all(_is_of_leaf(one) for one in cuts)
        if not is_meant and all(one.grad_mode for one in cuts):
            for one in cuts:
                self._found.setdefault((one.place, one.name), one)

    def _is_given(self, cut: Operation) -> bool:
        """Whether a cut takes what a graph has computed, rather than parameters."""
        return any(made is not None and made.gave_grad for made in map(self._flow.get, cut.inputs))

    def _is_of_input(self, cut: Operation) -> bool:
        """Whether what is detached is no more than a tensor that was flagged, for its own gradient: nothing trains behind it."""
        made = [one for number in cut.inputs for _, one in self._flow.upstream(number)]
        return bool(made) and not cut.leaves and not any(one.took_grad for one in made)

    def _cuts_behind(self, number: int) -> Iterator[Operation]:
        """The operations that took what requires grad and gave what does not, those nearest to a term.

        Nearest first: what made the data of the step may be hundreds of operations.
        """
        queue, seen = deque([number]), {number}
        while queue and len(seen) < MAX_BEHIND:
            operation = self._flow.get(queue.popleft())
            if operation is None:
                continue
            if operation.took_grad and not operation.gave_grad and not operation.in_segment:
                yield operation
                continue
            new = [one for one in operation.inputs if one not in seen]
            seen.update(new)
            queue.extend(new)

    def lines(self) -> list[tuple[Operation, Operation | None]]:
        """The operations that cut terms off; with the sum where that is given a number which was read elsewhere."""
        told: dict[tuple[Place | None, str], tuple[Operation, Operation | None]] = {
            key: (one, None) for key, one in self._found.items()
        }
        for read, total in self._added.told():
            told.setdefault((read.place, read.name), (read, total))
        return list(told.values())

    def guessed(self) -> list[tuple[Operation, Operation]]:
        """What reads a number and the sum that may have been given it, where only source can tell."""
        known = {(read.place, total.place) for read, total in self._added.told()}
        return [one for one in self._added.guessed() if (one[0].place, one[1].place) not in known]


def _is_of_leaf(operation: Operation) -> bool:
    """Whether an operation reads the `.data` of a weight."""
    return operation.name == "data" and bool(operation.leaves) and not operation.inputs
