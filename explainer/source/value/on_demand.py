"""What an object makes when it is first asked for it, and keeps: `if self._bank is None: self._bank = ...; return self._bank`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.origin import KEEP, called
from explainer.source.value.resolve import resolver_of

_DEPTH = 8
_CACHES = ("functools.cache", "functools.lru_cache", "functools.cached_property")


class _Cached(NamedTuple):
    """A function that keeps its results, by the statement that ends it."""

    file: SourceFile
    statement: ast.stmt


def kept_value(value: Value, program: Program) -> tuple[SourceFile, ast.stmt] | None:
    """The one statement that makes what a method keeps in its object, and a value is; None where it is no such value."""
    resolver = resolver_of(program)
    found: dict[ast.stmt, SourceFile] = {}
    for holder in _holders(value, program, 0):
        if isinstance(holder, _Cached):
            found[holder.statement] = holder.file
            continue
        for made in resolver.behind(holder):
            function = program.names(made.file).function_of(made.node)
            if _is_empty(made.node):
                continue
            if function is None or function.name == "__init__":
                return None
            found[made.file.statement(made.node)] = made.file
    statements = list(found.items())
    return (statements[0][1], statements[0][0]) if len(statements) == 1 else None


def is_made_on_demand(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement makes something once: its function asks whether that is there, or keeps its results."""
    function = program.names(file).function_of(statement)
    return function is not None and (
        _keeps_results(function, file, program) or any(isinstance(one, ast.If) for one in walk(function))
    )


def _keeps_results(function: Function, file: SourceFile, program: Program) -> bool:
    names = program.names(file)
    return any(names.qualified(getattr(one, "func", one)) in _CACHES for one in function.decorator_list)


def _is_empty(node: ast.AST) -> bool:
    """`None`, `0`, `{}`: what stands there before anything is made."""
    if isinstance(node, ast.Call):
        return dotted_name(node.func) in ("dict", "list", "OrderedDict") and not node.args and not node.keywords
    is_bare = (isinstance(node, ast.Dict) and not node.keys) or (isinstance(node, ast.List) and not node.elts)
    return is_bare or isinstance(node, ast.Constant)


def _holders(value: Value, program: Program, depth: int) -> Iterator[Value | _Cached]:
    """The attributes of objects that a value is read from, and the end of a function whose results are kept for it."""
    node = _whole(value.node)
    value = replace(value, node=node)
    name = dotted_name(node) or ""
    if depth > _DEPTH:
        return
    if name.startswith("self."):
        yield value
    elif isinstance(node, ast.Call):
        target = resolver_of(program).function_of(node, value)
        if target is not None and _keeps_results(target[1], target[0], program):
            yield _Cached(target[0], target[1].body[-1])
            return
        for one in called(node, value, program):
            yield from _holders(replace(one, pick=value.pick if one.pick is None else one.pick), program, depth + 1)
    elif isinstance(node, ast.Tuple) and isinstance(value.pick, int) and value.pick < len(node.elts):
        yield from _holders(replace(value, node=node.elts[value.pick], pick=None), program, depth + 1)
    elif name:
        for one in resolver_of(program).behind(value):
            yield from _holders(one, program, depth + 1)


def _whole(node: ast.expr) -> ast.expr:
    """What a value is a part or a view of: `self.cos` of `self.cos[:n].to(x.device)`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEP - {"clone"}:
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            node = node.value
        else:
            return node
