"""Terms of a loss that have no graph, though what trains went into them: they change its value and no gradient."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from .exits import Stack
from .flow import Flow, Operation
from .place import Place, describe

MAX_LOOKED_AT = 200
MAX_KEPT = 16
_SUMS = frozenset(
    ("add", "sub", "rsub", "__add__", "__radd__", "__sub__", "__rsub__", "__iadd__", "__isub__", "add_", "sub_", "stack")
)  # fmt: skip
# A constant that is taken off is a baseline more often than a term.
_ADDS = frozenset(("add", "__add__", "__radd__", "__iadd__", "add_", "stack"))
_SCALED = frozenset(
    ("mul", "div", "neg", "__mul__", "__rmul__", "__truediv__", "true_divide", "mul_", "div_", "squeeze")
)
# What they reduce is a list of terms only where it was stacked: in `(new - old).mean()` what is old is meant to be a constant.
_REDUCED = frozenset(("sum", "mean"))
# What a program cuts in so many words is meant; but a term that is computed from `.data` of weights alone can mean nothing.
_ON_PURPOSE = frozenset(("detach", "detach_", "data"))


class DeadTerms:
    """Looks at the sum that each backward starts from."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._found: dict[tuple[Place | None, str], Operation] = {}
        self._left: deque[tuple[int, Stack]] = deque(maxlen=MAX_LOOKED_AT)

    def left(self, number: int, stack: Stack) -> None:
        """An operation gave the program a number or an array."""
        self._left.append((number, stack))

    def saw_backward(self, root: Any) -> None:
        """A backward is about to start at a tensor; of more than one value there is no sum to look at."""
        number = self._flow.maker(root) if root.numel() == 1 and len(self._found) < MAX_KEPT else None
        if number is not None:
            self._look(number)
        self._left.clear()  # what an earlier round has read is part of no sum of a later one

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
        for one, stack in self._left:
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
        """The operations that took what requires grad and gave what does not, those nearest to a term."""
        queue, seen = [number], {number}
        while queue and len(seen) < MAX_LOOKED_AT:
            operation = self._flow.get(queue.pop())
            if operation is None:
                continue
            if operation.took_grad and not operation.gave_grad and not operation.in_segment:
                yield operation
                continue
            new = [one for one in operation.inputs if one not in seen]
            seen.update(new)
            queue.extend(new)

    def lines(self) -> list[Operation]:
        """The operations that cut terms off."""
        return list(self._found.values())


def _is_of_leaf(operation: Operation) -> bool:
    """Whether an operation reads the `.data` of a weight."""
    return operation.name == "data" and bool(operation.leaves) and not operation.inputs
