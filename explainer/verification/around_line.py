"""What stands around a traced line: a function that keeps what it made (`@lru_cache`), the parameters of the function."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache

from explainer.source.name import Function, dotted_name
from explainer.source.value.binding import all_parameters

_KEEPS = frozenset({"lru_cache", "cache", "cached_property"})


def is_memoised(path: str, line: int) -> bool:
    """Whether what a line makes is kept by a decorator of the function around it, or of one around that."""
    return any(_keeps(one) for one in _around(path, line))


def parameters_at(path: str, line: int) -> frozenset[str]:
    """The parameters of the innermost function around a line; none outside of functions."""
    found = _around(path, line)
    return frozenset(all_parameters(found[-1])) if found else frozenset()


def _around(path: str, line: int) -> list[Function]:
    """The functions around a line, the outermost first."""
    functions = _functions("".join(linecache.getlines(path)))
    return [one for one in functions if one.lineno <= line <= (one.end_lineno or one.lineno)]


@lru_cache(maxsize=64)
def _functions(text: str) -> tuple[Function, ...]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    found = [one for one in ast.walk(tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return tuple(sorted(found, key=lambda one: one.lineno))


def _keeps(function: Function) -> bool:
    called = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    return any((dotted_name(one) or "").rpartition(".")[2] in _KEEPS for one in called)
