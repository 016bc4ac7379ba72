"""What a loop goes through for what it takes: the generators behind its iterable, also those that a loader is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_DEPTH = 5
_MAX_SEEN = 200
_ITERATES = ("__iter__", "__next__", "__getitem__")


def fed_by(loop: ast.For | ast.AsyncFor, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, Function]]:
    """The program's functions and methods that run while the loop takes its next element, nearest first."""
    resolver = resolver_of(program)
    queue, seen, told = [(Value(loop.iter, file), 0)], set[ast.AST](), set[ast.AST]()
    while queue and len(seen) < _MAX_SEEN:
        value, depth = queue.pop(0)
        if value.node in seen or depth > _DEPTH:
            continue
        seen.add(value.node)
        node = value.node
        found = [resolver.function_of(node, value)] if isinstance(node, ast.Call) else []
        for where, owner in resolver.classes_of(value):
            found += [resolver.method(owner, name, where) for name in _ITERATES]
        for one in found:
            if one is not None and one[1] not in told:
                told.add(one[1])
                yield one
                queue += [(Value(inner, one[0]), depth + 1) for inner in _taken(one[1])]
        if isinstance(node, ast.Call):
            given = (*node.args, *(one.value for one in node.keywords))
            queue += [(Value(one, value.file), depth + 1) for one in given]
        queue += [(one, depth + 1) for one in resolver.behind(value)]


def _taken(function: Function) -> Iterator[ast.expr]:
    """What a generator goes through itself."""
    for node in walk(function):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            yield node.iter
        elif isinstance(node, ast.YieldFrom):
            yield node.value
