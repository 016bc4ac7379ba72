"""Gradients that an optimizer throws away unread, one backward after another, before it steps with those of the last.

`for part in batch: optimizer.zero_grad(); loss(part).backward()` and then `optimizer.step()`: only the last part trains. Not where
the program reads a gradient in between, nor where another line's backward left what is cleared, or another optimizer has stepped
with it, as a generator's does with gradients that its loss leaves in the discriminator too.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

from .place import Place

MAX_LOOKED_AT = 4
MAX_OPTIMIZERS = 32
LEAST = 2
_Stack = tuple[Place, ...]


@dataclass(slots=True)
class _Seen:
    """What is known of one optimizer: its gradients after it was last cleared or stepped, what was thrown away since, its steps."""

    kept: weakref.ref[Any]
    gradients: tuple[tuple[int, int], ...] = ()
    backward: int = 0
    thrown: list[tuple[_Stack, Place | None]] = field(default_factory=list)
    is_read: bool = False
    wasteful: int = 0
    plain: int = 0
    count: int = 0
    place: Place | None = None
    has_closure: bool = False


class Cleared:
    """Follows backward, clearing and stepping of each optimizer."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._backward = 0
        self._used = 0  # the last backward with which an optimizer has stepped
        self._stack: _Stack = ()

    def saw_backward(self, stack: _Stack) -> None:
        """A backward is about to run, asked for by these lines."""
        self._backward += 1
        self._stack = stack

    def saw_read(self) -> None:
        """The program has read a gradient, or a scaler has: none of those that are there is lost."""
        for one in self._seen.values():
            one.is_read = True

    def saw_module(self, module: Any, place: Place | None) -> None:
        """A module is about to clear the gradients of its parameters."""
        own = {id(one) for one in module.parameters()}
        for one in list(self._seen.values()):
            optimizer = one.kept()
            if optimizer is not None and any(id(each) in own for each in _first(optimizer)):
                self.saw_clear(optimizer, place)

    def saw_clear(self, optimizer: Any, place: Place | None) -> None:
        """An optimizer is about to clear its gradients."""
        seen = self._of(optimizer)
        if seen is None:
            return
        is_wasted = self._backward > max(seen.backward, self._used)
        if is_wasted and _gradients(optimizer) not in ((), seen.gradients):
            seen.thrown.append((self._stack, place))
        seen.backward, seen.gradients = self._backward, ()

    def saw_step(self, optimizer: Any, *, has_closure: bool = False) -> None:
        """An optimizer is about to step; one that is given a closure goes backward and clears as often as it likes."""
        seen = self._of(optimizer)
        if seen is None:
            return
        seen.has_closure |= has_closure
        self._used = self._backward
        lines = {place for _, place in seen.thrown}
        is_spent = self._backward > seen.backward and {stack for stack, _ in seen.thrown} == {self._stack}
        if is_spent and len(lines) == 1 and not seen.is_read and not _has_hooks(optimizer):
            seen.wasteful += 1
            seen.place, seen.count = seen.thrown[0][1], len(seen.thrown)
        else:
            seen.plain += 1
        seen.thrown, seen.is_read = [], False
        seen.backward, seen.gradients = self._backward, _gradients(optimizer)

    def told(self) -> list[tuple[Place | None, int]]:
        """The lines that clear, and of how many backwards before each step; where most steps were such ones."""
        return [
            (one.place, one.count)
            for one in self._seen.values()
            if one.wasteful >= LEAST and one.wasteful > one.plain and not one.has_closure
        ]

    def _of(self, optimizer: Any) -> _Seen | None:
        found = self._seen.get(id(optimizer))
        if (found is None or found.kept() is not optimizer) and len(self._seen) < MAX_OPTIMIZERS:
            found = self._seen[id(optimizer)] = _Seen(weakref.ref(optimizer))
        return found


def _first(optimizer: Any) -> list[Any]:
    """A few parameters of each of the first groups."""
    return [one for group in optimizer.param_groups[:MAX_LOOKED_AT] for one in group["params"][:MAX_LOOKED_AT]]


def _gradients(optimizer: Any) -> tuple[tuple[int, int], ...]:
    """Which gradients there are, and how often each was written."""
    return tuple((id(one.grad), one.grad._version) for one in _first(optimizer) if one.grad is not None)  # noqa: SLF001


def _has_hooks(optimizer: Any) -> bool:
    """Whether something takes gradients up as they come."""
    names = ("_post_accumulate_grad_hooks", "_backward_hooks")
    return any(getattr(one, name, None) for one in _first(optimizer) for name in names)
