"""A function that the program bound to a name of its own before it was replaced: `from ... import checkpoint`, a partial of it."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from contextlib import ExitStack
from types import CellType
from typing import Any


def replace_bound(old: Callable[..., Any], new: Callable[..., Any], undo: ExitStack) -> None:
    """Put `new` wherever a module, an object, a closure or a partial holds `old`; closing the stack puts `old` back there.

    Locals of calls that are under way cannot be reached, and `new` keeps what it wraps. No closure here may hold `old`.
    """
    wrapping = {id(cell) for cell in new.__closure__ or ()}  # cells compare by what they hold
    for holder in gc.get_referrers(old):
        if isinstance(holder, dict) and "__wrapped__" not in holder:
            _replace_in(holder, old, new, undo)
        elif isinstance(holder, functools.partial):
            _call(holder, new)
            undo.callback(_call, holder, old)
        elif isinstance(holder, CellType) and id(holder) not in wrapping:
            holder.cell_contents = new
            undo.callback(setattr, holder, "cell_contents", old)


def _replace_in(holder: dict[Any, Any], old: object, new: object, undo: ExitStack) -> None:
    for name, value in list(holder.items()):
        if value is old:
            holder[name] = new
            undo.callback(_put_back, holder, name, old, new)


def _put_back(holder: dict[Any, Any], name: object, old: object, new: object) -> None:
    if holder.get(name) is new:
        holder[name] = old


def _call(partial: functools.partial[Any], function: Callable[..., Any]) -> None:
    """Have a partial call another function: `func` itself is read-only, what it is pickled as is not."""
    partial.__setstate__((function, partial.args, partial.keywords, vars(partial)))  # type: ignore[attr-defined]
