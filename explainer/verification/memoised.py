"""Whether a line stands in a function that keeps what it made: `@lru_cache`, `@cached_property`."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache

from explainer.source.name import dotted_name

_KEEPS = frozenset({"lru_cache", "cache", "cached_property"})


def is_memoised(path: str, line: int) -> bool:
    """Whether what a line makes is kept by a decorator of the function around it, or of one around that."""
    return any(first <= line <= last for first, last in _kept("".join(linecache.getlines(path))))


@lru_cache(maxsize=64)
def _kept(text: str) -> tuple[tuple[int, int], ...]:
    try:
        return tuple(_functions(ast.parse(text)))
    except (SyntaxError, ValueError):
        return ()


def _functions(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """The first and last lines of the functions that a memo keeps the results of."""
    for node in ast.walk(tree):
        for one in node.decorator_list if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ():
            name = dotted_name(one.func if isinstance(one, ast.Call) else one) or ""
            if name.rpartition(".")[2] in _KEEPS:
                yield node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
