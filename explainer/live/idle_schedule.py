"""Schedules of an optimizer that never steps, while another one trains the same parameters at one and the same learning rate.

torch warns of it once, in the words for two steps in the wrong order, and not at all of a `ReduceLROnPlateau`. Nothing is wrong
where the other's rate moves all the same: it has a schedule of its own, or the program copies the rate by hand.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from .trace.place import Place, Places, describe

LEAST = 2  # times that a schedule moves, each behind a step of the other optimizer
MAX_SCHEDULES = 20
Stack = tuple[Place, ...]


@dataclass(slots=True)
class _Made:
    """Where an object was made, by the program's frames, and when."""

    stack: Stack
    number: int


@dataclass(slots=True)
class _Schedule:
    """What is known of a schedule: its `moves` between the steps of others than its own optimizer, and their first rates."""

    made: _Made
    epoch: Any = None
    moves: int = 0
    others: dict[int, Any] = field(default_factory=dict)
    rates: dict[int, list[float]] = field(default_factory=dict)


class IdleSchedules:
    """Looks, before each step of an optimizer, at the schedules of those that have made none."""

    def __init__(self, torch: Any, steps_of: Callable[[Any], int]) -> None:
        self._torch = torch
        self._places = Places(torch)
        self._steps_of = steps_of
        self._numbers = count()
        self._optimizers: weakref.WeakKeyDictionary[Any, _Made] = weakref.WeakKeyDictionary()
        self._schedules: weakref.WeakKeyDictionary[Any, _Schedule] = weakref.WeakKeyDictionary()
        self._heard: weakref.WeakSet[Any] = weakref.WeakSet()
        self._kept: list[Any] = []  # what a program drops as it ends is still asked for then

    def watch(self) -> None:
        """Remember where optimizers and schedules are made."""
        module = self._torch.optim.lr_scheduler
        self._note_makers(self._torch.optim.Optimizer, self._optimizers, _Made)
        for name in ("LRScheduler", "ReduceLROnPlateau"):  # the second does not call the first's `__init__`
            if "__init__" in vars(getattr(module, name, object)):
                self._note_makers(getattr(module, name), self._schedules, lambda *made: _Schedule(_Made(*made)))

    def _note_makers(self, owner: Any, made: Any, note: Callable[[Stack, int], Any]) -> None:
        make, places, numbers = owner.__init__, self._places, self._numbers

        @functools.wraps(make)
        def init(this: Any, *arguments: Any, **keywords: Any) -> None:
            __tracebackhide__ = True
            if this not in made and (made is self._optimizers or len(made) < MAX_SCHEDULES):
                made[this] = note(places.stack(2), next(numbers))
            make(this, *arguments, **keywords)

        owner.__init__ = init

    def before_step(self, optimizer: Any) -> None:
        """An optimizer is about to step: whether schedules of others have moved since its step before."""
        for schedule, seen in list(self._schedules.items()):
            own = getattr(schedule, "optimizer", None)
            if own is optimizer:
                self._heard.add(optimizer)
                del self._schedules[schedule]
            elif own is not None and not self._steps_of(own) and _trains_the_same(own, optimizer):
                if id(optimizer) not in seen.rates:
                    seen.others[id(optimizer)], seen.rates[id(optimizer)] = optimizer, _rates(optimizer)
                    seen.epoch = _epoch(schedule)
                    self._kept.append(schedule)
                self._count(schedule, seen)

    def _count(self, schedule: Any, seen: _Schedule) -> None:
        epoch = _epoch(schedule)
        seen.moves += epoch != seen.epoch
        seen.epoch = epoch

    def at_the_end(self) -> list[dict[str, Any]]:
        """The first schedule of each optimizer that never stepped, with the lines that made it and the two optimizers."""
        told: dict[int, dict[str, Any]] = {}
        for schedule, seen in sorted(self._schedules.items(), key=lambda one: one[1].made.number):
            own = getattr(schedule, "optimizer", None)
            self._count(schedule, seen)
            if own is None or id(own) in told or seen.moves < LEAST or self._steps_of(own) or len(seen.others) != 1:
                continue
            (other,) = seen.others.values()
            if other not in self._heard and _rates(other) == seen.rates[id(other)]:
                found = self._told(schedule, seen.made, own, other)
                if found is not None:
                    told[id(own)] = found
        return list(told.values())

    def _told(self, schedule: Any, made: _Made, own: Any, other: Any) -> dict[str, Any] | None:
        idle, stepping = self._optimizers.get(own), self._optimizers.get(other)
        if idle is None or stepping is None:
            return None
        inner, outer = _meeting(made.stack, idle.stack), _meeting(made.stack, stepping.stack)
        if inner is None or outer is None:
            return None
        return {
            "schedule": type(schedule).__name__, "optimizer": type(own).__name__, "stepping": type(other).__name__,
            "is_later": stepping.number > made.number,
            "made_by": [describe(one) for one in made.stack[min(inner, outer) : inner + 1]],
            "idle": describe(idle.stack[inner]),
            "stepping_by": [describe(one) for one in stepping.stack[outer:]],
        }  # fmt: skip


def _meeting(one: Stack, other: Stack) -> int | None:
    """The innermost frame that two stacks have in common, the same call of one function, by its number from outside."""
    found = None
    for at, (here, there) in enumerate(zip(one, other, strict=False)):
        if here[0] is not there[0]:
            break
        found = at
        if here[1] != there[1]:
            break
    return found


def _owned(optimizer: Any) -> set[int]:
    return {id(one) for group in optimizer.param_groups for one in group["params"]}


def _trains_the_same(idle: Any, optimizer: Any) -> bool:
    """Whether an optimizer has all parameters of another one, or this all of its own. Not one that has its groups as well.

    What wraps an optimizer takes over its groups, and with them the rate that a schedule writes there.
    """
    groups = {id(group) for group in idle.param_groups}
    if any(id(group) in groups for group in optimizer.param_groups):
        return False
    one, other = _owned(idle), _owned(optimizer)
    return bool(one and other) and (one <= other or other <= one)


def _rates(optimizer: Any) -> list[float]:
    return [float(group.get("lr", 0.0)) for group in optimizer.param_groups]


def _epoch(schedule: Any) -> Any:
    return getattr(schedule, "last_epoch", None)
