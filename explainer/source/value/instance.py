"""By which names a piece of a program reaches an object of a class: `net` of `net(x)`, `model.core` where `model(x)` runs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of
from explainer.source.value.resolve import Resolver, resolver_of

_DEPTH = 3
_CALLS = 2


def names_of(owner: ast.ClassDef, within: ast.AST, file: SourceFile, program: Program) -> list[str]:
    """The names by which what a node runs holds an object of a class; through methods of the same object too."""
    return list(dict.fromkeys(_names(owner, within, file, resolver_of(program), 0)))


def _names(owner: ast.ClassDef, within: ast.AST, file: SourceFile, resolver: Resolver, depth: int) -> Iterator[str]:
    for call in walk(within):
        if not isinstance(call, ast.Call):
            continue
        run = [call.func, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
        for node in run:
            name = dotted_name(node)
            for where, one in resolver.classes_of(Value(node, file)) if name not in (None, "self", "cls") else ():
                yield from (f"{name}{rest}" for rest in _parts(owner, one, where, resolver, 0))
        called = dotted_name(call.func) or ""
        target = resolver.function_of(call, Value(call, file)) if called.startswith("self.") else None
        if target is not None and called.count(".") == 1 and depth < _CALLS:
            inner = _names(owner, target[1], target[0], resolver, depth + 1)
            yield from (one for one in inner if one.startswith("self."))


def _parts(owner: ast.ClassDef, one: ast.ClassDef, file: SourceFile, resolver: Resolver, depth: int) -> Iterator[str]:
    """How an object of a class leads to one of another: "" where it is that one, `.core` where it makes it a part of itself."""
    if one is owner or any(base is owner for base in bases_of(one, file, resolver)):
        yield ""
        return
    made = resolver.method(one, "__init__", file)
    for bound in bounds_of(made[1]) if made is not None and depth < _DEPTH else ():
        if made is None or not bound.name.startswith("self.") or not isinstance(bound.node, ast.Call) or bound.fills:
            continue
        found = resolver.find_class(bound.node.func, made[0])
        if found is not None:
            attribute = bound.name.removeprefix("self")
            yield from (f"{attribute}{rest}" for rest in _parts(owner, found[1], found[0], resolver, depth + 1))


def bases_of(owner: ast.ClassDef, file: SourceFile, resolver: Resolver, depth: int = 0) -> Iterator[ast.ClassDef]:
    """The classes of the program that one inherits from, the nearest first."""
    for base in owner.bases if depth < _DEPTH else ():
        found = resolver.find_class(base, file)
        if found is not None:
            yield found[1]
            yield from bases_of(found[1], found[0], resolver, depth + 1)
