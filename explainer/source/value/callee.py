"""The functions that an expression may stand for: `hook` of `register_forward_hook(hook)`, through factories and parameters."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call, parameters_of, walk_scope
from explainer.source.value.registry import members_of
from explainer.source.value.resolve import Resolver, resolver_of

_DEPTH = 8
_CALLS = 3
_LIBRARIES = ("torch.", "numpy.", "math.")
_PARTIAL = ("functools.partial", "partial")


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """A function of the program; the first `given` of its parameters are bound already."""

    file: SourceFile
    function: Function | ast.Lambda
    given: int = 0

    def parameter(self, place: int) -> str | None:
        """The name of the parameter that gets the argument at a place; None where there is none."""
        names = parameters_of(self.function)
        at = place + self.given
        return names[at] if at < len(names) else None


def callees_of(node: ast.expr, file: SourceFile, program: Program) -> tuple[Callee, ...]:
    """Every function of the program that the value of an expression may be, each once."""
    if (program.names(file).qualified(node) or "").startswith(_LIBRARIES) or _is_builtin(node, file):
        return ()
    found = _callees(Value(node, file), resolver_of(program), 0)
    return tuple({one.function: one for one in found}.values())


def functions_called(call: ast.Call, value: Value, program: Program) -> list[tuple[SourceFile, Function]]:
    """The function of the program that a call runs, or the `forward` or `__call__` of each class that it may be a call of."""
    resolver = resolver_of(program)
    function = resolver.function_of(call, value)
    if function is not None:
        return [function]
    owners = resolver.classes_of(replace(value, node=call.func))
    found = [resolver.method(one, name, where) for where, one in owners for name in ("forward", "__call__")]
    return [one for one in found if one is not None]


def leads_to(written: ast.stmt, node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a function that a node calls, one that this calls, or a context that it enters, holds a statement."""
    for call in walk(node):
        for where, function in _run_by(call, file, program) if isinstance(call, ast.Call) else ():
            if written in set(walk_scope(function)):
                return True
            if depth < _CALLS and leads_to(written, function, where, program, depth + 1):
                return True
    return False


def _run_by(call: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, Function | ast.Lambda]]:
    """What a call runs; of a context manager's class what entering and leaving it run."""
    yield from ((one.file, one.function) for one in callees_of(call.func, file, program))
    resolver = resolver_of(program)
    owner = resolver.find_class(call.func, file) if isinstance(file.parents.get(call), ast.withitem) else None
    for name in ("__enter__", "__exit__") if owner is not None else ():
        method = resolver.method(owner[1], name, owner[0]) if owner is not None else None
        if method is not None:
            yield method


def _is_builtin(node: ast.expr, file: SourceFile) -> bool:
    """Whether a name is one of Python's own, which the file binds nowhere."""
    if not isinstance(node, ast.Name) or not hasattr(builtins, node.id):
        return False
    return all(isinstance(one.ctx, ast.Load) for one in file.plain_names[node.id]) and node.id not in _names_bound(file)


@lru_cache(maxsize=256)
def _names_bound(file: SourceFile) -> frozenset[str]:
    """The names of functions, classes, parameters and imports of a file."""
    found: set[str] = set()
    for node in file.walk():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return frozenset(found)


def _callees(value: Value, resolver: Resolver, depth: int) -> Iterator[Callee]:
    node = value.node
    if depth > _DEPTH:
        return
    if isinstance(node, ast.Lambda):
        yield Callee(file=value.file, function=node)
    elif isinstance(node, ast.IfExp):
        for branch in (node.body, node.orelse):
            yield from _callees(replace(value, node=branch), resolver, depth + 1)
    elif members := members_of(node, value.file, resolver.program):
        for file, member in members:
            if not isinstance(member, ast.ClassDef):
                yield Callee(file=file, function=member)
    elif isinstance(node, ast.Call):
        yield from _returned(node, value, resolver, depth)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        named = list(_named(node, value, resolver))
        yield from named
        for one in resolver.behind(value) if not named else ():
            if one.pick is None and not one.is_element:
                yield from _callees(one, resolver, depth + 1)


def _returned(node: ast.Call, value: Value, resolver: Resolver, depth: int) -> Iterator[Callee]:
    """What a call gives back: the function that a factory returns, an object that can be called, a partial."""
    if resolver.program.names(value.file).qualified(node.func) in _PARTIAL and node.args:
        for one in _callees(replace(value, node=node.args[0]), resolver, depth + 1):
            yield replace(one, given=one.given + len(node.args) - 1)
        return
    owner = resolver.find_class(node.func, value.file)
    owners = [owner] if owner is not None else resolver.classes_in_table(node.func, value)
    if owners:
        found = [resolver.method(one, "__call__", file) for file, one in owners]
        yield from (Callee(file=one[0], function=one[1]) for one in found if one is not None)
        return
    for factory in _callees(replace(value, node=node.func), resolver, depth + 1):
        arguments = bind_call(node, factory.function, value)
        if isinstance(factory.function, ast.Lambda):
            results = [factory.function.body]
        else:
            own = walk_scope(factory.function)
            results = [one.value for one in own if isinstance(one, ast.Return) and one.value is not None]
        for result in results:
            yield from _callees(Value(result, factory.file, arguments), resolver, depth + 1)


def _named(node: ast.Name | ast.Attribute, value: Value, resolver: Resolver) -> Iterator[Callee]:
    """The function or method of that name that is in sight where the expression stands."""
    program, file = resolver.program, value.file
    here = _in_scope(node, file) if isinstance(node, ast.Name) else None
    module, _, last = (program.names(file).qualified(node) or "").rpartition(".")
    imported = None if here is not None else _at_module(module, last, program)
    if here is not None:
        yield Callee(file=file, function=here)
    elif imported is not None:
        yield imported
    elif isinstance(node, ast.Attribute):
        yield from _methods(node, value, resolver)


def _in_scope(node: ast.Name, file: SourceFile) -> Function | None:
    """The function of that name in the nearest scope around."""
    scope: ast.AST | None = node
    while scope is not None:
        scope = file.enclosing(scope, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
        found = _functions_in(scope).get(node.id) if scope is not None else None
        if found is not None:
            return found
    return None


@lru_cache(maxsize=4096)
def _functions_in(scope: ast.AST) -> dict[str, Function]:
    """The functions that stand in a scope itself, by name; of two the later."""
    return {one.name: one for one in walk_scope(scope) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}


def _at_module(module: str, name: str, program: Program) -> Callee | None:
    """The function of that name in a module of the program."""
    for file in program.parsed():
        if module and file.tree is not None and program.names(file).module == module:
            for one in file.tree.body:
                if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name == name:
                    return Callee(file=file, function=one)
    return None


def _methods(node: ast.Attribute, value: Value, resolver: Resolver) -> Iterator[Callee]:
    """`self.hook`, `monitor.hook`: the method of the class, or of those that the object may be of."""
    if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        around = resolver.program.names(value.file).class_of(node)
        for file, method in resolver.dispatched(around, node.attr, value.file) if around is not None else ():
            yield Callee(file=file, function=method)
        return
    owners = resolver.classes_of(replace(value, node=node.value))
    for file, owner in owners:
        found = resolver.method(owner, node.attr, file)
        if found is not None:
            yield Callee(file=found[0], function=found[1])
