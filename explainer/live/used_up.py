"""Iterators of parameters that a program keeps and has walked to their end, while an optimizer is left frozen.

`self.critic = itertools.chain(a.parameters(), b.parameters())` is frozen by one pass; the pass that is to thaw it meets nothing.
"""

from __future__ import annotations

import ast
import gc
import itertools
import linecache
import re
from collections.abc import Iterator
from types import FrameType, FunctionType, GeneratorType
from typing import Any

MAX_HELD = 400
MAX_FILES = 20
_ALL = (GeneratorType, itertools.chain, filter, map)
_DEPTH = 4
_SWITCHES = re.compile(r"freez|thaw|require|trainable|toggle", re.IGNORECASE)


def used_up(frames: list[FrameType], torch: Any) -> list[str]:
    """The names of such iterators by which flags are switched more than once; none where no optimizer is frozen as a whole."""
    found: dict[str, set[str]] = {}
    for frame in frames:
        for name, one, files in _held(frame):
            if is_used_up(one):
                found.setdefault(name, set()).update(files)
    if not found or not _is_any_frozen(torch):
        return []
    return sorted(
        name for name, files in found.items() if sum(_switches(one, name) for one in sorted(files)[:MAX_FILES]) > 1
    )


def exhausted(frames: list[FrameType]) -> list[str]:
    """The variables of frames that are iterators at their end: of parameters that were counted first, nothing is left to optimize."""
    held = [(name, one) for frame in frames for name, one in list(frame.f_locals.items())[:MAX_HELD]]
    return sorted({name for name, one in held if type(one) in _ALL and is_used_up(one)})


def is_used_up(iterator: Any, depth: int = 0) -> bool:
    """Whether an iterator has come to its end, without asking it for another element."""
    kind = type(iterator)
    if kind is GeneratorType:
        return iterator.gi_frame is None
    held = [one for one in gc.get_referents(iterator) if not isinstance(one, type)]  # its own, from Python 3.12 on
    if kind is itertools.chain:
        return not held  # it lets go of what it walks
    held += [inner for one in held if type(one) is tuple for inner in one]  # those of `map`
    return depth < _DEPTH and kind in _ALL and any(is_used_up(one, depth + 1) for one in held if type(one) in _ALL)


def _held(frame: FrameType) -> Iterator[tuple[str, Any, set[str]]]:
    """The iterators that a frame's variables hold, or objects in them, each with the files whose code can read it."""
    for space in (frame.f_locals, frame.f_globals):
        for name, value in list(space.items())[:MAX_HELD]:
            if type(value) in _ALL:
                yield name, value, {frame.f_code.co_filename}
            kept = getattr(value, "__dict__", None) if not isinstance(value, type) else None
            inside = list(kept.items())[:MAX_HELD] if type(kept) is dict else []
            files = {*_files(type(value)), frame.f_code.co_filename}
            yield from ((key, one, files) for key, one in inside if type(one) in _ALL)


def _files(kind: type) -> set[str]:
    """The files that hold the methods of a class."""
    every = [one for base in kind.__mro__ for one in vars(base).values()]
    return {one.__code__.co_filename for one in every if type(one) is FunctionType}


def _switches(file: str, name: str) -> int:
    """How often a file switches flags of what a name holds: in a loop over it, or by a function that it is given to."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):  # the cell of a notebook with magics
        return 0
    return sum(_is_switch(node, name) for node in ast.walk(tree))


def _is_switch(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.For):
        return _is_read(node.iter, name) and any(_is_flag(one) for one in ast.walk(node))
    if not isinstance(node, ast.Call):
        return False
    given = [*node.args, *(one.value for one in node.keywords)]
    is_told = any(isinstance(one, ast.Constant) and isinstance(one.value, bool) for one in given)
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return any(_is_read(one, name) for one in given) and (is_told or _SWITCHES.search(called) is not None)


def _is_read(node: ast.expr, name: str) -> bool:
    return getattr(node, "attr", None) == name or getattr(node, "id", None) == name


def _is_flag(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("requires_grad", "requires_grad_")


def _is_any_frozen(torch: Any) -> bool:
    """Whether no parameter of some optimizer requires grad."""
    optimizers = [one for one in gc.get_objects() if issubclass(type(one), torch.optim.Optimizer)]
    owned = [[one for group in each.param_groups for one in group["params"]] for each in optimizers]
    return any(each and not any(one.requires_grad for one in each) for each in owned)
