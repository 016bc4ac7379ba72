"""What a function reads from outside of it, by name, so that it can be told when a name has moved on to another object."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

_VALUES = (int, float, str, bool, type(None))

Held = dict[str, Any]
"""By name: a small value as it is, a weak reference to an object."""


def captured(function: Callable[..., Any]) -> Held:
    """What the names that a function reads stand for now: those of the functions round it, and of its module."""
    return {name: one for name, value in _read(function) if (one := _hold(value)) is not None}


def moved_on(function: Callable[..., Any], held: Held) -> str | None:
    """The first name of a function that stands for something else than it did."""
    for name, value in _read(function):
        before = held.get(name)
        if before is None:
            continue
        if isinstance(before, weakref.ref):
            if before() is not value:
                return name
        elif type(value) is not type(before[0]) or value != before[0]:
            return name
    return None


def _hold(value: Any) -> Any:
    if isinstance(value, _VALUES):
        return (value,)
    try:
        return weakref.ref(value)
    except TypeError:  # lists and dicts, which the program may fill
        return None


def _read(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    while isinstance(function, functools.partial):
        function = function.func
    if not isinstance(function, FunctionType):
        return []
    code = function.__code__
    found = []
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # not bound yet
            continue
    found.extend((name, function.__globals__[name]) for name in code.co_names if name in function.__globals__)
    return found
