"""Parameters that an optimizer owns, that the program uses, and that a cut keeps from ever getting a gradient."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .flow import Flow, Operation

LEAST_STEPS = 2
MAX_LOOKED_AT = 32
MAX_OPERATIONS = 20_000


class Starved:
    """Counts the steps in which each parameter had a gradient."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._owned: dict[int, tuple[weakref.ref[Any], int, int]] = {}

    def saw_step(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        for group in optimizer.param_groups:
            for one in group["params"]:
                kept, steps, given = self._owned.get(id(one)) or (weakref.ref(one), 0, 0)
                self._owned[id(one)] = kept, steps + 1, given + (one.grad is not None)

    def cuts(self) -> list[tuple[Operation, int]]:
        """The cuts between such parameters and a loss that others train on, with how many parameters each starves."""
        found: dict[tuple[Any, str], tuple[Operation, int]] = {}
        hungry = [one for one in self._hungry() if one.requires_grad and one.is_leaf][:MAX_LOOKED_AT]
        takers = self._takers() if hungry else {}
        for parameter in hungry:
            cut = self._first_cut(parameter, takers)
            if cut is not None:
                key = cut.place, cut.name
                found[key] = cut, found.get(key, (cut, 0))[1] + 1
        return sorted(found.values(), key=lambda one: -one[1])

    def _hungry(self) -> Iterator[Any]:
        for kept, steps, given in self._owned.values():
            parameter = kept()
            if parameter is not None and steps >= LEAST_STEPS and not given:
                yield parameter

    def _takers(self) -> dict[int, list[int]]:
        """Which of the latest operations took what an operation made."""
        takers: dict[int, list[int]] = defaultdict(list)
        for number, operation in self._flow.since(len(self._flow) - MAX_OPERATIONS):
            for one in operation.inputs:
                takers[one].append(number)
        return takers

    def _first_cut(self, parameter: Any, takers: dict[int, list[int]]) -> Operation | None:
        """The nearest cut on the way from a parameter whose result goes on into what does train."""
        start = next(iter(self._flow.consumers_of_leaf(id(parameter))), None)
        queue = [start[0]] if start is not None else []
        seen = set(queue)
        while queue:
            number = queue.pop(0)
            operation = self._flow.get(number)
            if operation is None:
                continue
            if operation.took_grad and not operation.gave_grad and not operation.in_segment:
                if self._goes_on(number, takers):
                    return operation
                continue
            for one in takers.get(number, ()):
                if one not in seen:
                    seen.add(one)
                    queue.append(one)
        return None

    def _goes_on(self, number: int, takers: dict[int, list[int]]) -> bool:
        """Whether anything that comes of an operation is part of a graph again: a cut for a log or a metric is none."""
        queue, seen = [number], {number}
        while queue:
            for one in takers.get(queue.pop(0), ()):
                operation = self._flow.get(one)
                if operation is not None and operation.gave_grad:
                    return True
                if one not in seen:
                    seen.add(one)
                    queue.append(one)
        return False
