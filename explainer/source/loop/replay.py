"""Memories of a program: what a call puts into a container that outlives the training step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.loop.repeated import is_in_step
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, parameters_of, walk_scope
from explainer.source.value.lineage import binds, reads
from explainer.source.value.resolve import resolver_of

_PUTS = frozenset({"append", "appendleft", "extend", "add", "insert"})
_EMPTIES = frozenset({"clear", "pop", "popleft", "popitem", "reset"})
_HOLDERS = frozenset({"deque", "list", "dict", "defaultdict", "set", "OrderedDict"})


def stored_by(call: ast.Call, file: SourceFile, program: Program) -> tuple[ast.expr, ...]:
    """The arguments that a call puts into a memory which keeps them from step to step; none where it is emptied, or no memory."""
    if not isinstance(call.func, ast.Attribute):
        return ()
    target = resolver_of(program).function_of(call, Value(call, file))
    if target is not None:
        return tuple(_arguments(call, target[1])) if _keeps(target[1], target[0], program) else ()
    name = dotted_name(call.func.value)
    if name is None or call.func.attr not in _PUTS or not _is_kept(name, call, file, program):
        return ()
    return tuple(call.args)


def _arguments(call: ast.Call, function: Function) -> Iterator[ast.expr]:
    """The arguments of the parameters that a method puts away."""
    kept = set[str]().union(*(reads(one, graph=False) for one in _put(function)))
    names = parameters_of(function)
    for at, one in enumerate(call.args):
        rest = function.args.vararg.arg if function.args.vararg is not None else None
        name = names[at] if at < len(names) else rest
        if isinstance(one, ast.Starred) or name in kept:
            yield one
    for keyword in call.keywords:
        if keyword.arg in kept:
            yield keyword.value


def _put(function: Function) -> Iterator[ast.expr]:
    """What a method puts into an attribute of its object: `self.items.append(x)`, `self.items[i] = x`."""
    for node in walk_scope(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUTS:
            if (dotted_name(node.func.value) or "").startswith("self."):
                yield from node.args
        elif isinstance(node, ast.Assign) and (_holder(node) or "").startswith("self."):
            yield node.value


def _keeps(function: Function, file: SourceFile, program: Program) -> bool:
    """Whether a method puts something into attributes that steps do not empty."""
    owner = program.names(file).class_of(function)
    names = {
        name
        for node in walk_scope(function)
        if isinstance(node, (ast.Call, ast.Assign)) and (name := _holder(node)) is not None
    }
    return bool(names) and owner is not None and not any(_is_emptied(one, owner, file, program) for one in names)


def _holder(node: ast.Call | ast.Assign) -> str | None:
    place = node.func if isinstance(node, ast.Call) else node.targets[0]
    is_put = isinstance(place, ast.Subscript) or (isinstance(place, ast.Attribute) and place.attr in _PUTS)
    name = dotted_name(place.value) if is_put and isinstance(place, (ast.Subscript, ast.Attribute)) else None
    return name if name is not None and name.startswith("self.") else None


def _is_emptied(name: str, owner: ast.ClassDef, file: SourceFile, program: Program) -> bool:
    """Whether a class empties a container of its own, or makes it anew, outside of its constructor."""
    for node in walk(owner):
        function = program.names(file).function_of(node)
        if function is None or function.name == "__init__":
            continue
        if isinstance(node, ast.stmt) and name in binds(node):
            return True
        if (
            isinstance(node, ast.Attribute)
            and node.attr in _EMPTIES - {"popleft", "pop"}
            and dotted_name(node.value) == name
        ):
            return True
        if isinstance(node, ast.Delete) and any(name in reads(one, graph=False) for one in node.targets):
            return True
    return False


def _is_kept(name: str, call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a plain container is made before the training, and nothing in it empties or makes it anew."""
    made = resolver_of(program).constructors_of(Value(call.func.value, file))  # type: ignore[attr-defined]
    if not made or not all(
        isinstance(one.node, ast.Call) and (dotted_name(one.node.func) or "").rpartition(".")[2] in _HOLDERS
        for one in made
    ):
        return False
    if any(is_in_step(one.node, one.file, program) for one in made):
        return False
    for node in file.walk():
        if isinstance(node, ast.Attribute) and node.attr in _EMPTIES and dotted_name(node.value) == name:
            return False
        if isinstance(node, ast.stmt) and name in binds(node) and is_in_step(node, file, program):
            return False
    return True
