"""The calls from which a value comes: through names, attributes, parameters, parts of expressions, results of the program's functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.callee import functions_called
from explainer.source.value.resolve import resolver_of

_MOST = 200  # values that are followed


def calls_behind(values: Iterable[Value], program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """Each call on the way back from some values, once."""
    resolver = resolver_of(program)
    queue, seen, told = list(values), set[int](), set[ast.Call]()
    while queue and len(seen) < _MOST:
        value = queue.pop(0)
        if id(value.node) in seen:
            continue
        seen.add(id(value.node))
        for one in walk(value.node):
            inner = Value(one, value.file, value.arguments)  # type: ignore[arg-type]
            if isinstance(one, ast.Call):
                if one not in told:
                    told.add(one)
                    yield value.file, one
                for function in functions_called(one, inner, program):
                    queue += resolver.returns_of(function, one, inner)
            elif isinstance(one, (ast.Name, ast.Attribute)):
                queue += resolver.behind(inner)
