"""Whether a statement runs the forward of a module that fills lists, or on which hooks hang that do."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.source.file import SourceFile
from explainer.source.hook.addition import Addition
from explainer.source.hook.registration import Hook
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.callee import callees_of
from explainer.source.value.resolve import Resolver, resolver_of

_DEPTH = 3
_RUNS = ("forward", "__call__")


def runs_filling(node: ast.AST, file: SourceFile, additions: Sequence[Addition], program: Program) -> bool:
    """Whether a node runs a module that adds, or what the hook that adds hangs on, itself or by a function or module that it calls."""
    resolver = resolver_of(program)
    hooks = [one.by for one in additions if isinstance(one.by, Hook)]
    roots = [one for hook in hooks for one in _hooked(hook)]
    names = {(dotted_name(one.node) or "").rpartition(".")[2] for one in roots}
    made = {each.node for one in roots for each in resolver.constructors_of(one)}
    owners = {owner for hook in hooks if (owner := _own(hook, program)) is not None}
    owners |= {one.by for one in additions if isinstance(one.by, ast.ClassDef)}
    return _runs(node, file, (frozenset(names), frozenset(made), frozenset(owners)), resolver, 0)


Wanted = tuple[frozenset[str], frozenset[ast.expr], frozenset[ast.ClassDef]]


def _runs(node: ast.AST, file: SourceFile, wanted: Wanted, resolver: Resolver, depth: int) -> bool:
    names, made, owners = wanted
    for call in walk(node):
        if not isinstance(call, ast.Call):
            continue
        called = Value(call.func, file)
        if (dotted_name(call.func) or "").rpartition(".")[2] in names:
            return True
        if any(one.node in made for one in resolver.constructors_of(called)):
            return True
        if any(one in owners for _, one in resolver.classes_of(called)):
            return True
        if depth < _DEPTH and any(
            _runs(inner, where, wanted, resolver, depth + 1) for where, inner in _inside(call, file, resolver)
        ):
            return True
    return False


def _inside(call: ast.Call, file: SourceFile, resolver: Resolver) -> Iterator[tuple[SourceFile, ast.AST]]:
    """The functions that a call runs; of an object its `forward` or `__call__`."""
    yield from ((one.file, one.function) for one in callees_of(call.func, file, resolver.program))
    for where, owner in resolver.classes_of(Value(call.func, file)):
        for name in _RUNS:
            method = resolver.method(owner, name, where)
            if method is not None:
                yield method


def _hooked(hook: Hook) -> Iterator[Value]:
    """The objects in what a hook hangs on: `model` of `model.encoder[0]`, of `for layer in model.modules()`."""
    func, file = hook.call.func, hook.file
    todo: list[ast.expr] = [func.value] if isinstance(func, ast.Attribute) else []
    seen: set[str] = set()
    while todo:
        for node in walk(todo.pop()):
            name = dotted_name(node)
            if name in (None, "self") or name in seen or not isinstance(node, (ast.Name, ast.Attribute)):
                continue
            seen.add(name or "")
            yield Value(node, file)
            bound = bounds_of(scope_of(node, file)) if isinstance(node, ast.Name) else ()
            todo += [one.node for one in bound if one.name == name and one.is_element]


def _own(hook: Hook, program: Program) -> ast.ClassDef | None:
    """The class of a module that hangs a hook on a part of its own."""
    func = hook.call.func
    receiver = dotted_name(func.value) if isinstance(func, ast.Attribute) else None
    is_own = receiver is not None and f"{receiver}.".startswith("self.")
    return program.names(hook.file).class_of(hook.call) if is_own else None
