"""The calls from which a value comes: through names, attributes, parameters, parts of expressions, results of the program's functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import Resolver, resolver_of

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
                for function in _run(one, inner, resolver):
                    queue += resolver.returns_of(function, one, inner)
            elif isinstance(one, (ast.Name, ast.Attribute)):
                queue += resolver.behind(inner)


def _run(call: ast.Call, value: Value, resolver: Resolver) -> list[tuple[SourceFile, Function]]:
    """The function of the program that a call runs, or the `forward` of each module that it may be a call of."""
    function = resolver.function_of(call, value)
    if function is not None:
        return [function]
    owners = resolver.classes_of(replace(value, node=call.func))
    return [one for where, owner in owners if (one := resolver.method(owner, "forward", where)) is not None]
